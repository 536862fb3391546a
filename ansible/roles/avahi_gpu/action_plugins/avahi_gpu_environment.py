"""Action plugin: bring wheels to the target, as one file, where the module of this name has to install."""

from __future__ import annotations

import hashlib
import os
import tempfile
import zipfile

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    """Run the module; between a look and the work, send it what it needs."""

    TRANSFERS_FILES = True
    _supports_check_mode = True

    def run(self, tmp=None, task_vars=None):
        """Return the module's result."""
        result = super().run(tmp, task_vars)
        arguments = dict(self._task.args)
        for name in ("bundle", "source", "only_look"):
            arguments.pop(name, None)
        wheel, wheels = arguments.get("wheel"), arguments.get("wheels")
        if arguments.get("state", "present") == "absent":
            wheel = wheels = None
        wheel = self._find("wheel", wheel) if wheel else None
        files = self._list(wheels) if wheels else []
        if wheel:
            files = [*(f for f in files if os.path.basename(f) != os.path.basename(wheel)), wheel]
        builds = [wheel] if wheel else [f for f in files if os.path.basename(f).startswith("avahi_gpu-")]
        if builds:  # another build is another source, also where it has the same version
            named = "" if wheel else arguments.get("requirement", "avahi-gpu")
            arguments["source"] = " ".join([named, *map(self._describe, builds)]).strip()
        try:
            if files:
                look = self._execute(dict(arguments, only_look=True), task_vars)
                if look.get("failed") or self._task.check_mode or look.get("fits"):
                    return {
                        **result,
                        **(look if self._task.check_mode else self._execute(arguments, task_vars)),
                    }
                arguments["bundle"] = self._send(files)
            return {**result, **self._execute(arguments, task_vars)}
        finally:
            self._remove_tmp_path(self._connection._shell.tmpdir)

    def _execute(self, arguments, task_vars):
        return self._execute_module(module_args=arguments, task_vars=task_vars)

    def _find(self, name, path):
        """Return the path of a file or folder of the playbook; ``name`` is the argument's."""
        path = os.path.expanduser(str(path))
        found = self._loader.path_dwim(path)
        if not os.path.exists(found):
            raise AnsibleActionFail(f"{name}: there is no {found} on this machine, which runs Ansible")
        return found

    def _describe(self, file):
        """Return a wheel's name and digest."""
        with open(file, "rb") as content:
            return f"{os.path.basename(file)} sha256:{hashlib.sha256(content.read()).hexdigest()}"

    def _list(self, folder):
        """Return the wheels of a folder."""
        found = self._find("wheels", folder)
        wheels = [os.path.join(found, name) for name in sorted(os.listdir(found)) if name.endswith(".whl")]
        if not wheels:
            raise AnsibleActionFail(f"wheels: there is no file *.whl in {found}")
        return wheels

    def _send(self, files):
        """Bring the files to the target as one; return where it lies, a folder that the end removes."""
        if not self._connection._shell.tmpdir:
            self._make_tmp_path()
        remote = self._connection._shell.join_path(self._connection._shell.tmpdir, "wheels.zip")
        with tempfile.NamedTemporaryFile(suffix=".zip") as local:
            with zipfile.ZipFile(local, "w", zipfile.ZIP_STORED) as bundle:  # wheels are compressed already
                for file in files:
                    bundle.write(file, os.path.basename(file))
            local.flush()
            self._transfer_file(local.name, remote)
        self._fixup_perms2((self._connection._shell.tmpdir, remote))
        return remote
