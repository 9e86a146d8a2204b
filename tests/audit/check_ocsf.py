"""Holds every event on stdin against what is published of its class: the rules of OCSF 1.5.0, and the
pydantic models of two packages where they have the class. Prints which class was held against what."""
import json
import sys

from ocsf.events.application.application_lifecycle import ApplicationLifecycle
from ocsf.events.findings.detection import DetectionFinding as OtherDetectionFinding
from ocsf.events.network.dns import DNSActivity
from ocsf.events.system.event_log import EventLogActivity
from ocsf.events.system.filesystem import FileSystemActivity
from ocsf.events.system.kernel import KernelActivity
from ocsf.events.system.process import ProcessActivity
from py_ocsf_models import OCSF_VERSION
from py_ocsf_models.events.findings.detection_finding import DetectionFinding

# By class: category, activities besides 0 and 99, required attributes, attributes of which one must be there.
RULES = {
    0: (0, {}, [], []),
    1001: (1, range(1, 15), ["actor", "device", "file"], []),
    1003: (1, range(1, 5), ["actor", "device", "kernel"], []),
    1007: (1, range(1, 6), ["actor", "device", "process"], []),
    1008: (1, range(1, 11), ["device"], ["log_name", "log_provider", "file"]),
    2004: (2, range(1, 4), ["finding_info"], []),
    4001: (4, range(1, 8), [], ["dst_endpoint", "src_endpoint"]),
    4002: (4, range(1, 9), [], ["http_request", "http_response"]),
    4003: (4, [1, 2, 6], [], ["dst_endpoint", "src_endpoint"]),
    6002: (6, range(1, 9), ["app"], []),
}
MODELS = {
    1001: FileSystemActivity,
    1003: KernelActivity,
    1007: ProcessActivity,
    1008: EventLogActivity,
    2004: OtherDetectionFinding,
    4003: DNSActivity,
    6002: ApplicationLifecycle,
}
# Objects of which one attribute must be there, wherever they are.
ONE_OF = {
    "actor": ["process", "user", "invoked_by", "session", "app_name", "app_uid"],
    "process": ["pid", "uid"],
    "parent_process": ["pid", "uid"],
    "device": ["ip", "uid", "name", "hostname", "instance_uid"],
    "src_endpoint": ["ip", "uid", "name", "hostname", "svc_name"],
    "dst_endpoint": ["ip", "uid", "name", "hostname", "svc_name"],
    "user": ["account", "name", "uid"],
}
REQUIRED_OF = {
    "device": ["type_id"],
    "file": ["name", "type_id"],
    "file_result": ["name", "type_id"],
    "kernel": ["name", "type_id"],
    "app": ["name", "vendor_name"],
    "finding_info": ["title", "uid"],
    "connection_info": ["direction_id"],
    "query": ["hostname"],
}


def objects(value, name=None):
    if isinstance(value, dict):
        yield name, value
        for key, inner in value.items():
            if key not in ("unmapped", "data"):
                yield from objects(inner, key)
    elif isinstance(value, list):
        for inner in value:
            yield from objects(inner, name)


def rules(event):
    uid, activity = event["class_uid"], event["activity_id"]
    category, activities, required, one_of = RULES[uid]
    assert event["category_uid"] == category
    assert activity in (0, 99) or activity in activities, f"activity {activity}"
    assert event["type_uid"] == uid * 100 + activity
    assert event["severity_id"] in (0, 1, 2, 3, 4, 5, 6, 99)
    assert event["status_id"] in ((0, 1, 2, 3, 4, 5, 99) if uid == 2004 else (0, 1, 2, 99))
    assert isinstance(event["time"], int) and event["time"] > 10**12, "milliseconds"
    metadata = event["metadata"]
    assert metadata["version"] == OCSF_VERSION == "1.5.0", metadata["version"]
    assert metadata["product"]["vendor_name"] and metadata["product"]["name"]
    for name in required:
        assert event.get(name) is not None, f"{name} is missing"
    assert not one_of or any(event.get(name) for name in one_of), f"none of {one_of}"
    if "action_id" in event:
        assert event["action_id"] in (0, 1, 2) and "security_control" in metadata["profiles"]
    for name, value in objects(event):
        assert None not in value.values(), f"{name} has a null"
        wanted = ONE_OF.get(name, [])
        assert not wanted or any(key in value for key in wanted), f"{name} has none of {wanted}"
        for key in REQUIRED_OF.get(name, []):
            assert key in value, f"{name} has no {key}"


held = {"rules": set(), "py_ocsf_models": set(), "ocsf_pydantic": set()}
count = 0
for line in sys.stdin:
    event = json.loads(line)
    uid = event["class_uid"]
    try:
        rules(event)
        held["rules"].add(uid)
        if uid == 2004:
            DetectionFinding.model_validate(event)
            held["py_ocsf_models"].add(uid)
        if uid in MODELS and event["activity_id"] != 99:  # which these models don't have
            MODELS[uid].model_validate(event)
            held["ocsf_pydantic"].add(uid)
    except Exception as error:
        sys.exit(f"{type(error).__name__}: {error}\n{json.dumps(event, indent=1)}")
    count += 1
print(json.dumps({**{name: sorted(classes) for name, classes in held.items()}, "events": count}))
