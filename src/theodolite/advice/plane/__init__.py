"""The depth–width plane: public models, what is in use, the published fit and where a shape stands, as one drawing."""
