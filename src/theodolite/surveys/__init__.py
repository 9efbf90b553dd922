"""What is measured for a network and how it is summarised: one section per instrument; drawing is left to `report`."""
