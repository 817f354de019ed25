"""Questions: what is asked. Loaders, validation and the bundled bank."""
