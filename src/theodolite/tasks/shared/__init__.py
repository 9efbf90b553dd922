"""What several tasks share: automata, groups, digits, strings, functions of known rank. No task is registered here."""
