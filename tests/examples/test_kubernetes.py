"""The manifests for Kubernetes: pods fit Kubernetes' own schema, the rest the fields that KubeRay documents."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import ray
import yaml

from tests.docs.code_blocks import ROOT

FOLDER = ROOT / "examples" / "kubernetes"
MANIFESTS = [
    (path.name, manifest) for path in sorted(FOLDER.glob("*.yaml")) for manifest in yaml.safe_load_all(path.read_text())
]
NAMES = [f"{name}:{manifest['kind']}" for name, manifest in MANIFESTS]

FIELDS = {
    "RayCluster": {"apiVersion", "kind", "metadata", "spec"},
    "RayJob": {"apiVersion", "kind", "metadata", "spec"},
    "RayClusterSpec": {
        "authOptions", "autoscalerOptions", "enableInTreeAutoscaling", "gcsFaultToleranceOptions", "headGroupSpec",
        "headServiceAnnotations", "managedBy", "rayVersion", "suspend", "workerGroupSpecs",
    },
    "AuthOptions": {"enableK8sTokenAuth", "mode", "secretName"},
    "HeadGroupSpec": {"template", "headService", "enableIngress", "rayStartParams", "serviceType"},
    "WorkerGroupSpec": {
        "groupName", "idleTimeoutSeconds", "maxReplicas", "minReplicas", "numOfHosts", "rayStartParams", "replicas",
        "scaleStrategy", "suspend", "template",
    },
    "RayJobSpec": {
        "activeDeadlineSeconds", "backoffLimit", "clusterSelector", "deletionStrategy", "entrypoint",
        "entrypointNumCpus", "entrypointNumGpus", "entrypointResources", "jobId", "managedBy", "metadata",
        "rayClusterSpec", "runtimeEnvYAML", "shutdownAfterJobFinishes", "submissionMode", "submitterConfig",
        "submitterPodTemplate", "suspend", "ttlSecondsAfterFinished",
    },
}  # fmt: skip
"""The fields of ray.io/v1, as KubeRay's API reference lists them."""


def cluster_of(manifest: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = manifest["spec"]
    return spec["rayClusterSpec"] if manifest["kind"] == "RayJob" else spec


def parts(manifest: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each part of a manifest of KubeRay, with the name of its type."""
    cluster = cluster_of(manifest)
    yield manifest["kind"], manifest
    if manifest["kind"] == "RayJob":
        yield "RayJobSpec", manifest["spec"]
    yield "RayClusterSpec", cluster
    yield "AuthOptions", cluster["authOptions"]
    yield "HeadGroupSpec", cluster["headGroupSpec"]
    for group in cluster["workerGroupSpecs"]:
        yield "WorkerGroupSpec", group


def pods(manifest: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The pods of a manifest, as Kubernetes itself would be asked for them."""
    for kind, part in parts(manifest):
        if kind in ("HeadGroupSpec", "WorkerGroupSpec"):
            metadata = {"name": "pod", **part["template"].get("metadata", {})}
            yield {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": part["template"]["spec"]}


def check(manifest: dict[str, Any]) -> None:
    """Raise an error if Kubernetes or KubeRay do not know a field, or a pod's value has the wrong type."""
    version = kubernetes_validate.latest_version()
    if manifest["apiVersion"] != "ray.io/v1":
        kubernetes_validate.validate(manifest, version, strict=True)
        return
    for kind, part in parts(manifest):
        assert part.keys() <= FIELDS[kind], f"{kind} has no {part.keys() - FIELDS[kind]}"
        for name, value in part.get("rayStartParams", {}).items():
            assert isinstance(value, str), f"rayStartParams: {name} must be a string"
    for pod in pods(manifest):
        kubernetes_validate.validate(pod, version, strict=True)


@pytest.mark.parametrize(("name", "manifest"), MANIFESTS, ids=NAMES)
def test_fields_are_known(name: str, manifest: dict[str, Any]) -> None:
    check(manifest)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("replicas: 3", "replica: 3"),
        ("containerPort: 6379", "containerPort: many"),
        ("resources:", "resource:"),
        ('num-cpus: "0"', "num-cpus: 0"),
        ("authOptions:", "auth:"),
    ],
)
def test_a_wrong_field_is_noticed(right: str, wrong: str) -> None:
    text = (FOLDER / "raycluster.yaml").read_text()
    assert right in text
    with pytest.raises((kubernetes_validate.ValidationError, AssertionError, KeyError)):
        check(yaml.safe_load(text.replace(right, wrong)))


@pytest.mark.parametrize(("name", "manifest"), MANIFESTS, ids=NAMES)
def test_pods_have_one_image_and_the_version_of_ray_that_tests_ran_with(name: str, manifest: dict[str, Any]) -> None:
    if manifest["kind"] == "ConfigMap":
        return
    assert cluster_of(manifest)["rayVersion"] == ray.__version__
    assert f"FROM rayproject/ray:{ray.__version__}-py3" in (FOLDER / "Dockerfile").read_text()
    images = {container["image"] for pod in pods(manifest) for container in pod["spec"]["containers"]}
    assert len(images) == 1


def test_the_job_runs_the_program_that_it_mounts(tmp_path: Path, ray_cluster: None) -> None:
    config, job = yaml.safe_load_all((FOLDER / "rayjob.yaml").read_text())
    head = job["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]
    (program,) = config["data"]
    mounted = head["containers"][0]["volumeMounts"][0]
    assert job["spec"]["entrypoint"] == f"python {mounted['mountPath']}/{program}"
    assert head["volumes"] == [{"name": mounted["name"], "configMap": {"name": config["metadata"]["name"]}}]
    (tmp_path / program).write_text(config["data"][program])
    finished = subprocess.run(
        [sys.executable, tmp_path / program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "RAY_ADDRESS": ray.get_runtime_context().gcs_address},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (finished.stdout, finished.returncode) == ("{'R.x': [10], 'S.x': [11]}\n", 0), finished.stderr
