"""The JSDoc types of the page's scripts, checked by TypeScript; lit-html is what npm has, with its own types."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.interop.peers import npm_package

STATIC = Path(__file__).parent.parent.parent.parent / "src" / "accord" / "inspector" / "static"
LIT_HTML = STATIC / "vendor" / "lit-html"

OPTIONS = {
    "allowJs": True,
    "checkJs": True,
    "noEmit": True,
    "strict": True,
    "skipLibCheck": True,
    "noImplicitReturns": True,
    "noFallthroughCasesInSwitch": True,
    "target": "es2023",
    "module": "esnext",
    "moduleResolution": "bundler",
    "lib": ["es2023", "dom", "dom.iterable", "dom.asynciterable"],
    "types": [],
}


def check(folder: Path) -> list[str]:
    """Return what TypeScript finds in the scripts of a folder, beside lit-html as npm has it."""
    (folder / "vendor").mkdir()
    (folder / "vendor" / "lit-html").symlink_to(npm_package("lit-html"))
    configuration = {"compilerOptions": OPTIONS, "include": ["**/*.js"], "exclude": ["vendor"]}
    (folder / "tsconfig.json").write_text(json.dumps(configuration))
    command = ["node", str(npm_package("typescript") / "bin" / "tsc"), "--project", str(folder), "--pretty", "false"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=170, check=False)
    return [*done.stdout.splitlines(), *done.stderr.splitlines()]


def test_the_scripts_have_the_types_that_they_name(tmp_path: Path) -> None:
    scripts = tmp_path / "static"
    shutil.copytree(STATIC, scripts, ignore=shutil.ignore_patterns("vendor"))
    assert "\n".join(check(scripts)) == ""


def test_every_script_is_checked() -> None:
    scripts = [path for path in STATIC.rglob("*.js") if LIT_HTML not in path.parents]
    assert scripts
    assert [path.name for path in scripts if not path.read_text("utf-8").startswith("// @ts-check\n")] == []
    assert [path.name for path in scripts if "@ts-ignore" in path.read_text("utf-8")] == []
    assert [path.name for path in scripts if "@ts-nocheck" in path.read_text("utf-8")] == []


@pytest.mark.parametrize(
    ("script", "error"),
    [
        ("/** @param {string} text */\nexport function f(text) { return text.size; }\n", "TS2551|TS2339"),
        ("export function f(text) { return text; }\n", "TS7006"),
        ('import { html } from "./vendor/lit-html/lit-html.js";\nexport const f = html(1);\n', "TS2345"),
        ('import { absent } from "./vendor/lit-html/lit-html.js";\nexport const f = absent;\n', "TS2305"),
    ],
)
def test_a_wrong_type_is_found(script: str, error: str, tmp_path: Path) -> None:
    scripts = tmp_path / "static"
    scripts.mkdir()
    (scripts / "script.js").write_text(f"// @ts-check\n{script}")
    assert any(code in line for line in check(scripts) for code in error.split("|"))


def test_the_vendored_files_are_those_of_npm() -> None:
    files = [path for path in LIT_HTML.rglob("*") if path.is_file()]
    assert len(files) > 5
    assert all(
        path.read_bytes() == (npm_package("lit-html") / path.relative_to(LIT_HTML)).read_bytes() for path in files
    )
