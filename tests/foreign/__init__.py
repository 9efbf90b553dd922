"""Networks as others write them, from public definitions, none of them with this package in mind."""
