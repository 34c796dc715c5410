"""A refusal is told as RFC 9457 wants it, with a JSON pointer to what is wrong."""

from __future__ import annotations

from lambdas.core.problems import Problem, bad_request, forbidden, gone, not_found, unprocessable


def test_a_problem_has_type_title_status_and_detail() -> None:
    assert bad_request("no JSON").body() == {
        "type": "urn:neverdrop:problem:bad-request",
        "title": "The request cannot be read",
        "status": 400,
        "detail": "no JSON",
    }


def test_a_problem_points_at_the_field_also_when_it_is_the_whole_body() -> None:
    assert unprocessable("`text` is missing", "/input/text").body()["errors"] == [
        {"pointer": "/input/text", "detail": "`text` is missing"}
    ]
    assert bad_request("not JSON", "").body()["errors"] == [{"pointer": "", "detail": "not JSON"}]


def test_a_problem_names_the_job_it_is_about() -> None:
    assert gone("j").body()["job_id"] == "j"
    assert "job_id" not in not_found().body()


def test_each_refusal_has_its_status() -> None:
    made: list[Problem] = [bad_request(""), forbidden(""), not_found(), gone("j"), unprocessable("")]
    assert [problem.status for problem in made] == [400, 403, 404, 410, 422]
    assert len({problem.kind for problem in made}) == 5
