import io
import json
import logging
import re
import subprocess
import sys
import threading
import time
from contextlib import redirect_stderr
from pathlib import Path

import pytest
import structlog
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from app import logs
from app.main import create_app
from app.settings import Settings
from medlink import __version__

MARK = "Zyxwv Qponm"
JSON = {"content-type": "application/json"}


@pytest.fixture
def service(build, tmp_path):
    settings = Settings(data_dir=tmp_path, max_body_bytes=20_000)
    with TestClient(create_app(settings, build=build), raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def written():
    """What the service writes to stderr, as `medlink serve` configures it; put back afterwards."""
    root, access = logging.getLogger(), logging.getLogger("uvicorn.access")
    handlers, level = root.handlers, root.level
    stream = io.StringIO()
    with redirect_stderr(stream):
        logs.configure(level="DEBUG")
        yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    root.handlers, access.disabled = handlers, False
    root.setLevel(level)
    structlog.reset_defaults()


def figures(client) -> dict[tuple, float]:
    text = client.get("/metrics").text
    families = text_string_to_metric_families(text)
    return {(s.name, *sorted(s.labels.items())): s.value for family in families for s in family.samples}


def feed_marks(client) -> list:
    """Send a marker in every place where a client can put text, well and badly formed."""
    bad = [
        json.dumps({"mentions": [MARK], "top_k": MARK}),
        json.dumps({"mentions": [{"text": MARK, MARK: MARK}]}),
        json.dumps({"mentions": [MARK + "\0"]}),
        '{"mentions": ["' + MARK + '\\ud800"]}',
        '{"mentions": ["' + MARK,
        json.dumps({"mentions": [MARK * 2_000]}),
    ]
    good = {"mentions": [MARK, {"text": MARK, "context": f"{MARK} (ZQ)", "id": MARK}], "explain": True}
    answers = [client.post(path, content=body, headers=JSON) for body in bad for path in ("/link", "/link/bulk")]
    answers += [client.get(f"/concepts/{MARK}"), client.get("/link", params={"q": MARK}), client.get(f"/{MARK}")]
    answers += [client.get("/info", headers={"X-Request-ID": MARK})]
    # Its own text is what this one must answer with.
    assert client.post("/link", json=good).is_success
    return answers


def test_no_mention_gets_into_a_log_a_metric_a_span_or_an_error(build, tmp_path, written):
    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    settings = Settings(data_dir=tmp_path, max_body_bytes=20_000)
    with TestClient(create_app(settings, build=build, spans=provider), raise_server_exceptions=False) as client:
        answers = feed_marks(client)
        scraped = client.get("/metrics").text

    told = {
        "logs": json.dumps(written()),
        "metrics": scraped,
        "spans": "".join(span.to_json() for span in spans.get_finished_spans()),
        "errors": "".join(answer.text for answer in answers),
        "headers": "".join(str(answer.headers) for answer in answers),
    }
    assert min(len(text) for text in told.values()) > 500
    assert [place for place, text in told.items() if re.search("Zyxwv|Qponm", text, re.IGNORECASE)] == []


def test_requests_are_counted_by_route_template_and_status(service):
    service.post("/link", json={"mentions": ["asthma"]})
    service.post("/link", json={"mentions": "asthma"})
    service.get("/concepts/C0004096")
    service.get("/concepts/nowhere")
    service.get("/wp-login.php")
    service.get("/docs/files/favicon-32x32.png")
    service.request("BREW", "/livez")
    service.get("/admin/jobs/abc")
    service.post("/link", json={"mentions": ["asthma"]}, headers={"X-API-Key": "none"})
    service.get("/admin/nothing")

    seen = figures(service)

    def count(method, route, status):
        return seen[("http_requests_total", ("method", method), ("route", route), ("status", status))]

    assert count("POST", "/link", "200") == count("POST", "/link", "422") == 1
    assert count("GET", "/concepts/{identifier:path}", "200") == 1
    assert count("GET", "/concepts/{identifier:path}", "404") == 1
    assert count("GET", "unmatched", "404") == 1
    # Refused for want of a key, or of the store that knows the keys.
    assert count("GET", "/admin/jobs/{job_id}", "401") == count("POST", "/link", "503") == 1
    assert count("GET", "unmatched", "401") == 1
    assert count("GET", "/docs/files/*", "200") == 1
    assert count("OTHER", "/livez", "405") == 1
    assert seen[("http_request_duration_seconds_count", ("route", "/link"))] == 3
    assert seen[("http_requests_in_progress",)] == 1  # the scrape itself


def test_stages_say_how_long_they_took_and_over_how_many_texts(service):
    service.post("/link", json={"mentions": ["asthma", "asthma", "heart attack"]})

    seen = figures(service)

    def items(stage):
        return seen[("medlink_stage_items_total", ("stage", stage))]

    # Equal mentions are answered once.
    assert (items("queue"), items("short_forms"), items("encode"), items("serialise")) == (2, 2, 2, 2)
    assert seen[("medlink_batch_size_sum",)] == 2
    for stage in ("short_forms", "exact", "dense", "encode", "lexical", "fusion", "serialise"):
        assert seen[("medlink_stage_duration_seconds_sum", ("stage", stage))] > 0


def test_the_build_that_answers_is_named(service, build):
    seen = figures(service)

    labels = {"version": __version__, "build": build.id, "encoder": build.encoder.fingerprint[:12]}
    assert seen[("medlink_build_info", *sorted(labels.items()))] == 1
    assert seen[("medlink_build_names",)] == build.manifest["counts"]["names"]
    assert seen[("medlink_ready",)] == 1
    assert seen[("medlink_resident_memory_bytes",)] > 10_000_000
    assert seen[("medlink_rebuild_running",)] == 0


def test_the_build_before_is_marked_as_such(make_build, tmp_path, build):
    app = create_app(Settings(data_dir=tmp_path), build=build)
    with TestClient(app) as client:
        figures(client)
        builds, other = client.app_state["builds"], make_build(tmp_path)
        builds._build = other
        seen = figures(client)

    shown = {dict(key[1:])["build"]: value for key, value in seen.items() if key[0] == "medlink_build_info"}
    assert shown == {build.id: 0, other.id: 1}


def test_a_service_without_an_index_is_scraped_too(tmp_path):
    with TestClient(create_app(Settings(data_dir=tmp_path))) as client:
        assert figures(client)[("medlink_ready",)] == 0


def test_two_services_in_one_process_count_apart(build, tmp_path, service):
    with TestClient(create_app(Settings(data_dir=tmp_path), build=build)) as other:
        other.get("/info")
        seen = figures(service)

    assert not [key for key in seen if ("route", "/info") in key]


@pytest.mark.parametrize("path", ["/livez", "/concepts/nowhere", "/nowhere", "/docs/files/favicon-32x32.png"])
def test_a_request_id_goes_in_and_out(service, path):
    assert service.get(path, headers={"X-Request-ID": "ward-7:42"}).headers["x-request-id"] == "ward-7:42"
    made = {service.get(path).headers["x-request-id"] for _ in range(2)}
    assert len(made) == 2


@pytest.mark.parametrize("sent", ["", "a b", "x" * 65, "é", "a\u00a0b", "{}"])
def test_a_request_id_that_is_none_is_replaced(service, sent):
    answered = service.get("/livez", headers={"X-Request-ID": sent.encode()}).headers["x-request-id"]

    assert re.fullmatch("[0-9a-f]{32}", answered)


def test_a_log_line_has_the_route_and_the_id(service, written):
    service.get("/concepts/C0004096?x=1", headers={"X-Request-ID": "abc"})

    (line,) = [entry for entry in written() if entry["event"] == "request"]

    assert line.pop("seconds") > 0
    assert line.pop("timestamp")
    expected = {"method": "GET", "route": "/concepts/{identifier:path}", "status": 200}
    assert line == {"event": "request", "level": "info", "request_id": "abc", **expected}


def test_what_is_logged_meanwhile_carries_the_id_of_the_request(build, tmp_path, written):
    app = create_app(Settings(data_dir=tmp_path), build=build)

    @app.get("/broken")
    def broken():
        raise RuntimeError(MARK)

    with TestClient(app) as client:
        answer = client.get("/broken", headers={"X-Request-ID": "abc"})

    assert (answer.status_code, answer.headers["x-request-id"]) == (500, "abc")
    (line,) = [entry for entry in written() if entry["event"] == "unexpected_error"]
    assert (line["request_id"], line["kind"], line["file"]) == ("abc", "RuntimeError", __file__)


def test_libraries_log_lines_without_their_values(written):
    try:
        raise ValueError(MARK)
    except ValueError:
        logging.getLogger("uvicorn.error").exception("Exception in ASGI application\n")
    logging.getLogger("sqlalchemy").warning("statement %s failed", MARK)
    logging.getLogger("uvicorn.error").info("Started server process [%d]", 7)
    logging.getLogger("uvicorn.access").info("GET /%s", MARK)
    structlog.get_logger().info("linked", mention=MARK)

    first, second, third, fourth = written()

    assert (first["event"], first["kind"]) == ("Exception in ASGI application", "ValueError")
    assert (second["event"], second["logger"]) == ("statement %s failed", "sqlalchemy")
    assert third["event"] == "Started server process [7]"
    assert (fourth["event"], fourth["mention"]) == ("linked", "withheld")
    assert MARK not in json.dumps(written())


def test_spans_follow_the_caller_and_name_the_stages(build, tmp_path):
    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    caller = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
    with TestClient(create_app(Settings(data_dir=tmp_path), build=build, spans=provider)) as client:
        client.post("/link", json={"mentions": ["asthma"]}, headers=caller)

    request, *stages = reversed(spans.get_finished_spans())

    assert request.name == "POST /link"
    assert request.attributes["http.response.status_code"] == 200
    assert {span.context.trace_id for span in [request, *stages]} == {0x0AF7651916CD43DD8448EB211C80319C}
    assert {span.parent.span_id for span in stages} == {request.context.span_id}
    assert {"short_forms", "dense", "encode", "lexical", "fusion", "serialise"} <= {span.name for span in stages}


def test_spans_are_off_unless_asked_for(service):
    assert Settings().tracing is False
    assert "trace" not in json.dumps(dict(service.get("/livez").headers))


def test_livez_answers_while_every_handler_thread_is_busy(build, tmp_path):
    app = create_app(Settings(data_dir=tmp_path), build=build)
    free = threading.Event()

    @app.get("/slow")
    def slow():
        free.wait(30)

    with TestClient(app) as client:
        threads = [threading.Thread(target=client.get, args=["/slow"]) for _ in range(50)]
        for thread in threads:
            thread.start()
        begin = time.monotonic()
        live = client.get("/livez")
        seconds = time.monotonic() - begin
        free.set()
        for thread in threads:
            thread.join()

    assert (live.status_code, seconds < 10) == (200, True)


COUNT_ONCE = """
import os, sys
from app.metrics import Metrics, forget_dead_workers
from app.serving import ActiveBuilds
from app.settings import Settings
metrics = Metrics()
metrics.requests.labels("GET", "/livez", "200").inc()
metrics.state.observe(ActiveBuilds(Settings()), is_open=False)
if sys.argv[1:] == ["last"]:
    forget_dead_workers()
    print(metrics.exposition().decode())
"""


def test_workers_that_share_a_directory_are_counted_together_and_dead_ones_have_no_memory(tmp_path, monkeypatch):
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    run = [sys.executable, "-c", COUNT_ONCE]
    subprocess.run(run, check=True, timeout=140)

    text = subprocess.run([*run, "last"], check=True, timeout=140, capture_output=True, text=True).stdout

    assert 'http_requests_total{method="GET",route="/livez",status="200"} 2.0' in text
    assert len(re.findall(r"^medlink_resident_memory_bytes\{", text, re.MULTILINE)) == 1


def test_the_context_of_a_caller_is_read_from_its_header_alone():
    # What `Trace` relies on: no baggage, which may hold anything, is read.
    assert set(TraceContextTextMapPropagator().fields) == {"traceparent", "tracestate"}


def test_the_documented_metrics_are_those_there_are(service):
    service.post("/link", json={"mentions": ["asthma"]})
    page = (Path(__file__).parents[2] / "docs/operations.md").read_text(encoding="utf-8")

    documented = set(re.findall(r"`((?:http|medlink)_[a-z_]+)`", page))
    families = text_string_to_metric_families(service.get("/metrics").text)
    told = {f"{f.name}_total" if f.type == "counter" else f.name for f in families if not f.name.endswith("_created")}
    assert {name for name in told if name.startswith(("http_", "medlink_"))} == documented
