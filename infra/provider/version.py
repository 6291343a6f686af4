"""The provider's version, as Pulumi keeps it in the state."""

VERSION = "0.1.0"
