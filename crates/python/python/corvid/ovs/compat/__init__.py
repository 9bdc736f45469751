"""Libraries of others that programs expect inside the package."""
