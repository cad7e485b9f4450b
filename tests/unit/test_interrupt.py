"""Ctrl-C waits for a block to end, and then comes."""

import signal
import threading

import pytest

from sidelight._interrupt import uninterrupted


@pytest.fixture(autouse=True)
def ctrl_c_is_heard():
    """A shell starts what it sends to the background deaf to Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_comes_once_the_block_has_ended():
    done = []

    def block():
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            done.append("all of it")

    with pytest.raises(KeyboardInterrupt):
        block()

    assert done == ["all of it"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_without_ctrl_c_nothing_comes_and_the_handler_is_put_back():
    handler = signal.getsignal(signal.SIGINT)

    with uninterrupted():
        assert signal.getsignal(signal.SIGINT) is not handler

    assert signal.getsignal(signal.SIGINT) is handler


def test_an_error_in_the_block_climbs_out_and_the_handler_is_put_back():
    handler = signal.getsignal(signal.SIGINT)

    with pytest.raises(ZeroDivisionError), uninterrupted():
        raise ZeroDivisionError

    assert signal.getsignal(signal.SIGINT) is handler


def test_whoever_ignores_ctrl_c_goes_on_ignoring_it():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_another_thread_may_enter_too():
    entered = []

    def enter():
        with uninterrupted():
            entered.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()

    assert entered == [signal.getsignal(signal.SIGINT)]
