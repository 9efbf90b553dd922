"""Tables and figures drawn to the terminal and to a page that stands alone; knows no instrument."""
