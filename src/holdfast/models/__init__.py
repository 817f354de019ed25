"""Models of our own: responders without a network, and a lean way to a server."""

from .lean import Lean
from .lexical import Lexical
from .profile import Profile, profile, profiles
from .recorded import Recorded
from .simulated import Simulated

__all__ = ["Lean", "Lexical", "Profile", "Recorded", "Simulated", "profile", "profiles"]
