"""Reading a YAML file so that nothing a person wrote in it is lost without a word."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from ops.errors import SettingsError


class _Loader(yaml.SafeLoader):
    """YAML's safe loader takes the last of two equal keys; a limit in the first would be no limit."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"the key '{key.value}' stands twice", key.start_mark
                    )
                seen.add(key.value)
        return super().construct_mapping(node, deep)


def read_yaml(path: Path, what: str) -> Any:
    """What a YAML file holds; `what` names the file in errors, such as "settings file".

    Raises:
        SettingsError: it cannot be read, is not UTF-8, is not YAML, or has a key twice.
    """
    try:
        return yaml.load(path.read_text(encoding="utf-8"), _Loader)  # noqa: S506 (a SafeLoader)
    except OSError as error:
        raise SettingsError(f"Cannot read the {what} {path}: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise SettingsError(f"The {what} {path} is not text in UTF-8.") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error).replace("\n", " ")
        raise SettingsError(f"The {what} {path} is not usable YAML{line}: {problem}.") from None
    except RecursionError:
        raise SettingsError(f"The {what} {path} is not usable YAML: it is nested too deeply.") from None
    except ValueError as error:  # a date that is none, a number that is none
        raise SettingsError(f"The {what} {path} is not usable YAML: {error}.") from None
