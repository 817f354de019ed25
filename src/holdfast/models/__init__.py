"""Models that need no network: simulated, lexical and recorded responders."""

from .lexical import Lexical
from .profile import Profile, profile, profiles
from .recorded import Recorded
from .simulated import Simulated

__all__ = ["Lexical", "Profile", "Recorded", "Simulated", "profile", "profiles"]
