#!/usr/bin/python
"""Ansible module: a virtual environment with avahi-gpu, also where the target has no pip at all."""

from __future__ import annotations

import contextlib
import glob
import json
import os
import shutil
import tempfile
import zipfile

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: avahi_gpu_environment
short_description: Install avahi-gpu into a virtual environment
description:
  - Makes a virtual environment where there is none, and installs avahi-gpu into it with pip.
  - Needs nothing on the target but Python 3.10 or newer. Where it has no pip, the one among O(wheels) is
    taken, or C(ensurepip), or on Debian and Ubuntu the package C(python3-pip-whl), which is unpacked and not
    installed.
  - What it installed is noted in C(.avahi-gpu-source) inside of the environment, and left alone as long as
    the same is asked for.
version_added: "0.1.0"
author:
  - The avahi-gpu project (@avahi-gpu)
options:
  path:
    description: The virtual environment.
    type: path
    required: true
  state:
    description: Whether avahi-gpu is to be there.
    type: str
    choices: [present, absent]
    default: present
  requirement:
    description: What pip is to install, for example C(avahi-gpu==0.1.0).
    type: str
    default: avahi-gpu
  wheel:
    description: A wheel of avahi-gpu on the controller, installed in the place of O(requirement).
    type: path
  wheels:
    description: A folder of wheels on the controller. Nothing else is asked, and no network is needed.
    type: path
  python:
    description: The Python of a new environment.
    type: path
    default: /usr/bin/python3
  link:
    description: A link to the command, made where nothing is in its place.
    type: path
  bundle:
    description: Set by the action plugin of the same name, the wheels as a ZIP file on the target.
    type: path
  source:
    description: Set by the action plugin of the same name, what the environment is to be made of.
    type: str
  only_look:
    description: Set by the action plugin of the same name to learn whether wheels have to be brought.
    type: bool
    default: false
attributes:
  check_mode:
    description: Tells whether something would be installed or removed.
    support: full
  diff_mode:
    description: Names what would be installed or removed.
    support: full
"""

EXAMPLES = r"""
- name: Install the newest avahi-gpu of PyPI
  avahi_gpu_environment:
    path: /opt/avahi-gpu

- name: Install without a network
  avahi_gpu_environment:
    path: /opt/avahi-gpu
    wheels: wheels/
"""

RETURN = r"""
executable:
  description: The C(avahi-gpu) of the environment.
  returned: always
  type: str
"""

NOTE = ".avahi-gpu-source"
PIP = ("install", "--quiet", "--no-input", "--disable-pip-version-check", "--no-cache-dir", "--no-compile")
LOCK = "--option=DPkg::Lock::Timeout=300"  # seconds: unattended-upgrades at boot


def main():
    """Bring the environment into the wanted state."""
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "requirement": {"type": "str", "default": "avahi-gpu"},
            "wheel": {"type": "path"},
            "wheels": {"type": "path"},
            "python": {"type": "path", "default": "/usr/bin/python3"},
            "link": {"type": "path"},
            "bundle": {"type": "path"},
            "source": {"type": "str"},
            "only_look": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    if not os.path.isabs(module.params["path"]):
        module.fail_json(
            msg=f"{module.params['path']} is not a full path. Begin avahi_gpu_virtualenv with /."
        )
    place = Environment(module)
    try:
        if module.params["state"] == "present":
            place.be_there()
        place.be_gone()
    except InstallationFailed as fault:
        module.fail_json(msg=str(fault))


class InstallationFailed(Exception):
    """What went wrong, and what to do."""


class Environment:
    """One virtual environment on the target."""

    def __init__(self, module):
        self.module = module
        self.path = module.params["path"]
        self.python = os.path.join(self.path, "bin", "python")
        self.executable = os.path.join(self.path, "bin", "avahi-gpu")
        self.link = module.params["link"]
        self.source = module.params["source"] or module.params["requirement"]
        self.note = os.path.join(self.path, NOTE)
        try:
            with open(self.note, encoding="utf-8") as file:
                self.noted = json.load(file)
        except (OSError, ValueError):
            self.noted = {}

    # --- present -----------------------------------------------------------------------------------------

    def be_there(self):
        """Install what is wanted, unless it is there; end the module."""
        fits = self._fits()
        unlinked = self._link_is_wanted()
        if self.module.params["only_look"] or self.module.check_mode:
            self._end(not fits or unlinked, after=f"{self.executable} from {self.source}\n", fits=fits)
        if not fits:
            self._install()
        if unlinked:
            os.makedirs(os.path.dirname(self.link), exist_ok=True)
            self._remove_link()
            os.symlink(self.executable, self.link)
        self._end(not fits or unlinked, after=f"{self.executable} from {self.source}\n", fits=True)

    def _fits(self):
        """Return whether what is wanted is installed, and runs."""
        wanted = {self.source, self.noted.get("source")}
        any_will_do = self.source == "avahi-gpu"  # also one that somebody else has installed
        if len(wanted) != 1 and not any_will_do:
            return False
        return os.access(self.executable, os.X_OK) and self._call([self.executable, "--version"])[0] == 0

    def _install(self):
        made = not os.path.exists(self.python)
        if made and self.noted.get("made"):
            shutil.rmtree(self.path)  # ours, but its Python has gone with an upgrade of the system
        if made and os.path.isdir(self.path) and os.listdir(self.path):
            self._fail(f"{self.path} is not a virtual environment, and not empty", "name another folder")
        with tempfile.TemporaryDirectory(prefix="avahi-gpu-") as scratch:
            try:
                if made:
                    os.makedirs(self.path, exist_ok=True)
                    self._write_note("", made=True)  # what is cut short from here on is known for ours
                self._fill(scratch, made=made)
            except BaseException:
                if made:
                    shutil.rmtree(self.path, ignore_errors=True)
                raise
        self._write_note(self.source, made=made or bool(self.noted.get("made")))

    def _write_note(self, source, *, made):
        with open(self.note, "w", encoding="utf-8") as file:
            json.dump({"source": source, "made": made}, file)
        os.chmod(self.note, 0o644)

    def _fill(self, scratch, *, made):
        wheels = self._unpack(scratch)
        base = self.module.params["python"]
        if made:
            own_pip = self._call([base, "-c", "import ensurepip"])[0] == 0
            self._demand([base, "-m", "venv", *([] if own_pip else ["--without-pip"]), self.path])
        pip = self._pip(wheels, scratch)
        offline = ["--no-index", "--find-links", wheels] if self.module.params["wheels"] else []
        wheel = self.module.params["wheel"]
        what = os.path.join(wheels, os.path.basename(wheel)) if wheel else self.module.params["requirement"]
        self._demand([*pip, *PIP, "--upgrade", *offline, what])
        if self.module.params["bundle"] and not made:  # pip leaves another build of the same version as it is
            self._demand([*pip, *PIP, "--force-reinstall", "--no-deps", *offline, what])
        self._demand([self.executable, "--version"])

    def _pip(self, wheels, scratch):
        """Return the command line of a pip that works on this environment."""
        if self._call([self.python, "-c", "import pip"])[0] == 0:
            return [self.python, "-m", "pip"]
        # a wheel of pip runs as it is, which is how ensurepip itself installs pip
        return [self.python, os.path.join(self._find_pip(wheels, scratch), "pip")]

    def _unpack(self, scratch):
        folder = os.path.join(scratch, "wheels")
        os.mkdir(folder)
        if self.module.params["bundle"]:
            with zipfile.ZipFile(self.module.params["bundle"]) as bundle:
                bundle.extractall(folder)  # packed by our own action plugin
        return folder

    def _find_pip(self, wheels, scratch):
        """Return a wheel of pip. Ends the module where there is none to be had."""
        found = sorted(glob.glob(os.path.join(wheels, "pip-*.whl")))
        if not found and shutil.which("apt-get"):
            found = self._fetch_pip(scratch)
        if not found:
            wheel = " Or put a wheel of pip beside the others." if self.module.params["wheels"] else ""
            self._fail(
                f"there is no pip for {self.module.params['python']}",
                f"install python3-venv, or what your distribution calls it.{wheel}",
            )
        return found[-1]

    def _fetch_pip(self, scratch):
        """Unpack Debian's wheel of pip into ``scratch``; neither a package nor a list of apt is changed."""
        apart = [
            LOCK,
            f"--option=Dir::State::Lists={scratch}/lists",
            f"--option=Dir::Cache={scratch}/cache",
            "--option=APT::Sandbox::User=root",
        ]
        os.makedirs(os.path.join(scratch, "lists", "partial"))
        os.makedirs(os.path.join(scratch, "cache", "archives", "partial"))
        package = "python3-pip-whl"
        if self._call(["apt-get", *apart[:1], *apart[3:], "download", package], cwd=scratch)[0] != 0:
            self._call(["apt-get", *apart, "update"])
            if self._call(["apt-get", *apart, "download", package], cwd=scratch)[0] != 0:
                return []
        for deb in glob.glob(os.path.join(scratch, f"{package}_*.deb")):
            self._demand(["dpkg-deb", "--extract", deb, os.path.join(scratch, "deb")])
        return sorted(glob.glob(os.path.join(scratch, "deb/usr/share/python-wheels/pip-*.whl")))

    def _link_is_wanted(self):
        if not self.link or self.link_target() == self.executable:
            return False
        if os.path.lexists(self.link) and not self._is_ours(self.link_target()):
            self.module.warn(f"{self.link} is not ours and stays as it is; the command is {self.executable}")
            return False
        return True

    def link_target(self):
        """Return what the link says, '' where there is none."""
        return os.readlink(self.link) if self.link and os.path.islink(self.link) else ""

    def _is_ours(self, target):
        return target.endswith("/bin/avahi-gpu") and not os.path.exists(target)

    # --- absent ------------------------------------------------------------------------------------------

    def be_gone(self):
        """Remove what this module has installed, and nothing else; end the module."""
        linked = bool(self.link) and self.link_target() == self.executable
        noted = bool(self.noted)
        if not self.module.check_mode:
            if self.noted.get("made"):
                shutil.rmtree(self.path)
            elif noted:
                with tempfile.TemporaryDirectory(prefix="avahi-gpu-") as scratch:
                    pip = self._pip(scratch, scratch)
                    self._demand([*pip, "uninstall", "--yes", "--quiet", "avahi-gpu"])
                os.unlink(self.note)
            if linked:
                self._remove_link()
        self._end(noted or linked, before=f"{self.executable}\n", fits=noted)

    def _remove_link(self):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.link)

    # --- ends --------------------------------------------------------------------------------------------

    def _call(self, argv, cwd=None):
        return self.module.run_command(argv, cwd=cwd, environ_update={"LC_ALL": "C"})

    def _demand(self, argv):
        code, out, err = self._call(argv)
        if code != 0:
            said = [line.strip() for line in (err or out).splitlines() if line.strip()]
            errors = [line for line in said if line.startswith(("ERROR", "error", "E:"))]
            told = "; ".join(errors or said[-3:])[:2000]
            raise InstallationFailed(f"{' '.join(argv)} ended with {code}: {told}")

    def _fail(self, what, hint):
        raise InstallationFailed(f"{what}: {hint}")

    def _end(self, changed, before="", after="", **more):
        result = {"changed": changed, "executable": self.executable, **more}
        if changed:
            title = f"avahi-gpu in {self.path}"
            headers = {"before_header": title, "after_header": title}
            result["diff"] = {"before": before, "after": after, **headers}
        self.module.exit_json(**result)


if __name__ == "__main__":
    main()
