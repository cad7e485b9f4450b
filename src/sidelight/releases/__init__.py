"""From a private table to a release: plan, run, release, folders."""
