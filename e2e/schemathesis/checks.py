"""Checks beside those of schemathesis: roles, and that an answer has nothing that is not described."""

import os

import schemathesis

ROLES = ["view", "support", "operate", "configure"]
AUTHORIZATION = f"Bearer {os.environ['SLUICE_TOKEN']}"
OWN = ROLES.index(os.environ["SLUICE_ROLE"])


@schemathesis.check
def role(ctx, response, case):
    """Whoever has the role of `x-sluice-role`, or a later one, may. Others may not."""
    needed = case.operation.definition.raw.get("x-sluice-role")
    sent = response.request
    if needed is None or sent.headers.get("Authorization") != AUTHORIZATION:
        return
    if sent.method != case.operation.method.upper() or response.status_code == 429:
        return
    may = ROLES.index(needed) <= OWN
    assert may == (response.status_code != 403), f"{ROLES[OWN]} gets {response.status_code}, {needed} is needed"


@schemathesis.check
def described(ctx, response, case):
    """Every member of an answer is described."""
    if "json" not in response.headers.get("content-type", [""])[0]:
        return
    root = case.operation.schema.raw_schema
    responses = case.operation.definition.raw["responses"]
    answer = follow(root, responses.get(str(response.status_code)) or responses["default"])
    for content in answer.get("content", {}).values():
        unknown = sorted(set(undescribed(root, content["schema"], response.json(), "")))
        assert not unknown, f"not described: {', '.join(unknown)}"


def follow(root, schema):
    """What a reference is to."""
    while "$ref" in schema:
        target = root
        for name in schema["$ref"].removeprefix("#/").split("/"):
            target = target[name]
        schema = target
    return schema


def undescribed(root, schema, value, at):
    """Members that the schema does not have. An object without `properties` may have any."""
    schema = follow(root, schema)
    if isinstance(value, list):
        for item in value:
            yield from undescribed(root, schema.get("items", {}), item, at)
    elif isinstance(value, dict) and "properties" in schema:
        for name, member in value.items():
            if name in schema["properties"]:
                yield from undescribed(root, schema["properties"][name], member, f"{at}.{name}")
            else:
                yield f"{at}.{name}"
