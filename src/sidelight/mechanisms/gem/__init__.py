"""GEM: marginals fitted by a generator network, with public data or without."""
