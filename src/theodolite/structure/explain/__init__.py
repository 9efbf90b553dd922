"""What a network that was found says, for people: effects, importance, stability, formulas. No search, no fit."""
