"""What ssh's end and words mean."""

from __future__ import annotations

import pytest

from avahi_gpu.survey.remote import explain, remote_command


@pytest.mark.parametrize(
    ("code", "said", "printed", "meaning"),
    [
        (255, "ssh: connect to host 10.0.0.2 port 22: Connection timed out\n", "", "gets no answer"),
        (255, "ssh: connect to host 10.0.0.2 port 22: No route to host\r\n", "", "no route"),
        (255, "ssh: connect to host 10.0.0.2 port 22: Connection refused\r\n", "", "no ssh server"),
        (255, "Host key verification failed.\r\n", "", "does not know its host key: `ssh node-2.local`"),
        (255, "root@10.0.0.2: Permission denied (publickey,password).\r\n", "", "ssh-copy-id node-2.local"),
        (255, "ssh: Could not resolve hostname box: Name or service not known\n", "", "HostName"),
        (255, "kex_exchange_identification: read: Connection reset by peer\n", "", "ssh ended with 255: kex"),
        (127, "", "bash: line 1: exec: avahi-gpu: not found\r\n", "avahi-gpu is not found there"),
        (127, "", "ssh is not installed here", "ssh is not installed here"),
        (2, "", "usage\r\navahi-gpu: no such option\r\n", "ssh ended with 2: avahi-gpu: no such option"),
        (0, "", "", "ssh ended with 0: no word of it"),
    ],
)
def test_each_end_has_its_meaning(code: int, said: str, printed: str, meaning: str) -> None:
    assert meaning in explain(code, said, printed, "node-2.local")


def test_a_changed_host_key_is_told_before_the_failure_that_follows() -> None:
    said = "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.\n"

    assert "another than before" in explain(255, said, "", "node-2.local")


def test_a_python_with_a_quote_in_its_path_stays_one_word() -> None:
    command = remote_command("/opt/it's/python")

    assert command.startswith('PATH="$PATH:$HOME/.local/bin":') and "'/opt/it'\"'\"'s/python'" in command
