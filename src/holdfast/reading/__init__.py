"""Reading: what a reply says, of the options it was asked about or instead of an answer."""
