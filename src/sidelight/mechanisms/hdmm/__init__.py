"""HDMM: fixed workloads, answered with noise that is planned for them."""
