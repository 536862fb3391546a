#!/usr/bin/python
"""Ansible module: the files of /etc/avahi-gpu, put there so that what was there before comes back."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile

from ansible.module_utils.avahi_gpu_command import FINE, PENDING, ask, say
from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: avahi_gpu_configuration
short_description: Put the configuration, the key and the template of avahi-gpu in place
description:
  - Writes C(config.toml), C(key) and C(templates/torch.service.j2) into C(/etc/avahi-gpu).
  - A file that was there before is kept, and comes back once the file is no longer given, or with
    O(state=absent).
  - Nothing is written before avahi-gpu itself has read it and found it right.
version_added: "0.1.0"
author:
  - The avahi-gpu project (@avahi-gpu)
options:
  state:
    description: Whether the files are to be there, or what was there before.
    type: str
    choices: [present, absent]
    default: present
  config:
    description: The content of C(config.toml).
    type: str
  key:
    description: The cluster key.
    type: str
  template:
    description: The content of C(templates/torch.service.j2).
    type: str
  executable:
    description: The C(avahi-gpu) that reads the files before they are put in place.
    type: path
  stage:
    description: A folder that is filled as C(/etc/avahi-gpu) would be, which is left alone then.
    type: path
  folder:
    description: The folder of the configuration.
    type: path
    default: /etc/avahi-gpu
  memory:
    description: The folder that keeps what was there before.
    type: path
    default: /var/lib/avahi-gpu-ansible
attributes:
  check_mode:
    description: Tells what would be written or put back.
    support: full
  diff_mode:
    description: Shows the files, apart from the key.
    support: full
"""

EXAMPLES = r"""
- name: Put this node into a cluster of its own
  avahi_gpu_configuration:
    config: |
      cluster = "lab"
"""

RETURN = r"""
paths:
  description: The files that were changed, or in check mode would be.
  returned: always
  type: list
  elements: str
"""

MODES = {"config.toml": 0o644, "key": 0o600, "templates/torch.service.j2": 0o644}


def main():
    """Bring the files into the wanted state."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "config": {"type": "str"},
            "key": {"type": "str", "no_log": True},
            "template": {"type": "str"},
            "executable": {"type": "path"},
            "stage": {"type": "path"},
            "folder": {"type": "path", "default": "/etc/avahi-gpu"},
            "memory": {"type": "path", "default": "/var/lib/avahi-gpu-ansible"},
        },
        supports_check_mode=True,
    )
    given = [module.params[name] for name in ("config", "key", "template")]
    wanted = {name: ended(text) for name, text in zip(MODES, given) if text is not None}
    if module.params["state"] == "absent":
        wanted = {}
    files = Files(module.params["folder"], module.params["memory"])
    changes = files.compare(wanted)
    if module.params["stage"]:
        files.stage(module.params["stage"], changes)
        module.exit_json(changed=True, paths=[])
    result = {"changed": bool(changes), "paths": [files.path(name) for name in changes]}
    if module._diff:
        result["diff"] = [files.diff(name, content) for name, content in changes.items()]
    if changes and module.params["state"] == "present" and module.params["executable"]:
        judge(module, files, changes)
    if not module.check_mode:
        files.change(changes, wanted)
        if module.params["state"] == "absent":
            files.forget()
    module.exit_json(**result)


def ended(text):
    """Return the bytes of a file whose last line ends."""
    return text.encode() if text.endswith("\n") or not text else f"{text}\n".encode()


def judge(module, files, changes):
    """Let avahi-gpu read the files in a place apart; end the module where it takes offence."""
    with tempfile.TemporaryDirectory(prefix="avahi-gpu-") as stage:
        files.stage(stage, changes)
        executable = module.params["executable"]
        told = ask(module, executable, "setup", "--check", "--config-folder", stage)
        if told["exit_code"] not in (FINE, PENDING) and told["errors"]:
            of_key = changes.get("key") is not None and told["errors"][0]["code"] == "bad-key-file"
            whose = "the variable avahi_gpu_key holds no key: " if of_key else ""
            module.fail_json(msg=whose + say(told["errors"]), errors=told["errors"])
        if changes.get("key") is not None:
            told = ask(module, executable, "key", "check", "--file", os.path.join(stage, "key"))
            if told["exit_code"] != FINE:
                said = say(told["errors"]).replace(stage, files.folder)
                module.fail_json(msg=f"the variable avahi_gpu_key holds no key: {said}")


class Files:
    """The folder of the configuration, and the memory of what it held before."""

    def __init__(self, folder, memory):
        self.folder, self.memory = folder, memory
        self.before = os.path.join(memory, "before")
        try:
            with open(os.path.join(memory, "put.json"), encoding="utf-8") as file:
                noted = json.load(file)
        except (OSError, ValueError):
            noted = {}
        self.put = set(noted.get("files", []))  # what we have put there
        self.made = list(noted.get("folders", []))  # made by us, the outermost first

    def path(self, name):
        """Return where a file lies."""
        return os.path.join(self.folder, name)

    def compare(self, wanted):
        """Return the contents that have to be written, by name; None for what was there before."""
        changes = {}
        for name, mode in MODES.items():
            if name in wanted:
                if read(self.path(name)) != wanted[name] or mode_of(self.path(name)) != mode:
                    changes[name] = wanted[name]
            elif name in self.put:
                changes[name] = None
        return changes

    def diff(self, name, content):
        """Return one file's diff for Ansible; of a key only that it changes."""
        path = self.path(name)
        after = read(os.path.join(self.before, name)) if content is None else content
        before = read(path)
        if name == "key":
            before, after = (None if b is None else b"(a key, not shown)\n" for b in (before, after))
            if before is not None and before == after:
                after = b"(another key, not shown)\n"
        headers = {"before_header": path, "after_header": path}
        return {"before": text_of(before), "after": text_of(after), **headers}

    def stage(self, stage, changes):
        """Fill another folder as this one would be."""
        os.makedirs(stage, exist_ok=True)
        if os.path.isdir(self.folder):
            shutil.copytree(self.folder, stage, symlinks=True, dirs_exist_ok=True)
        for name, content in changes.items():
            path = os.path.join(stage, name)
            if content is None:
                remove(path)
                copy(os.path.join(self.before, name), path)
            else:
                os.makedirs(os.path.dirname(path), exist_ok=True)
                write(path, content, MODES[name])

    def change(self, changes, wanted):
        """Write what is wanted and bring back what is no longer so."""
        for name, content in changes.items():
            path = self.path(name)
            if content is None:
                remove(path)
                copy(os.path.join(self.before, name), path)
                remove(os.path.join(self.before, name))
                self.put.discard(name)
                self._note()
                continue
            if name not in self.put:
                remove(os.path.join(self.before, name))
                copy(path, os.path.join(self.before, name))
                self.put.add(name)
            self._make_folders(os.path.dirname(path))
            self._note()  # before the file: what is cut short here is put back all the same
            write(path, content, MODES[name])

    def forget(self):
        """Remove the folders that we made and that are empty now, and the memory."""
        for folder in reversed(self.made):
            with contextlib.suppress(OSError):  # somebody has put something there
                os.rmdir(folder)
        shutil.rmtree(self.memory, ignore_errors=True)

    def _make_folders(self, folder):
        missing = []
        while not os.path.isdir(folder):
            missing.append(folder)
            folder = os.path.dirname(folder)
        self.made += reversed(missing)
        self._note()
        for one in reversed(missing):
            os.mkdir(one)
            os.chmod(one, 0o755)  # noqa: S103  as the folders of /etc are

    def _note(self):
        os.makedirs(self.memory, mode=0o700, exist_ok=True)
        noted = json.dumps({"files": sorted(self.put), "folders": self.made})
        write(os.path.join(self.memory, "put.json"), noted.encode(), 0o600)


def read(path):
    """Return a file's content, None where there is none."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def mode_of(path):
    """Return the mode of a file that is no link, None where there is none."""
    if os.path.islink(path) or not os.path.exists(path):
        return None
    return os.stat(path).st_mode & 0o7777


def write(path, content, mode):
    """Write a file all or nothing."""
    handle, temporary = tempfile.mkstemp(prefix=".avahi-gpu-", dir=os.path.dirname(path))
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        remove(temporary)
        raise


def copy(source, target):
    """Copy a file with mode, times and owner, a link as a link; do nothing where there is none."""
    if not os.path.lexists(source):
        return
    os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
    shutil.copy2(source, target, follow_symlinks=False)
    status = os.lstat(source)
    os.chown(target, status.st_uid, status.st_gid, follow_symlinks=False)


def remove(path):
    """Remove a file that may be missing."""
    if os.path.lexists(path):
        os.unlink(path)


def text_of(content):
    """Return a content as text, '' for none."""
    return (content or b"").decode("utf-8", "backslashreplace")


if __name__ == "__main__":
    main()
