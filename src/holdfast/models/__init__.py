"""Models of our own: responders without a network, and a lean way to a server."""

from .behaviour import Profile, profile, profiles
from .offline import Lexical, Recorded
from .simulated import Simulated

__all__ = ["Lexical", "Profile", "Recorded", "Simulated", "profile", "profiles"]
