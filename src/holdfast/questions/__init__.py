"""Questions: loaders, validation and the bundled bank."""
