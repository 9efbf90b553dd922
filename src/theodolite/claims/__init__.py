"""What the sources claim: one room per source with its rules and measurements, published tables, how one is checked."""
