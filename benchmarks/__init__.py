"""What has a limit, measured: each module gives rows, `make bench` prints them."""
