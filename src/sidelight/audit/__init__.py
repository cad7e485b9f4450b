"""Audits: attacks that bound from below how much privacy a mechanism really loses."""

from sidelight.audit.attack import Audit as Audit
from sidelight.audit.attack import attack as attack
from sidelight.audit.attack import audit_mechanism as audit_mechanism
