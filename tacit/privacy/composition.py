"""How the losses of many steps add up (Section 3.5)."""

from __future__ import annotations

from tacit.privacy.conversion import rho_of

__all__ = ["rho_of"]
