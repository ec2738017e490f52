from {{ cookiecutter.__package_name }}.engine.run.profiling import Profiler


def traces(folder):
    return list(folder.glob("plugins/profile/*/*.xplane.pb"))


def test_what_runs_between_the_two_steps_is_recorded(tmp_path):
    profiler = Profiler(tmp_path, (3, 5))
    profiler.at(3)
    assert traces(tmp_path) == []
    profiler.at(5)
    assert len(traces(tmp_path)) == 1
    profiler.close()


def test_a_recording_that_never_ended_is_written_all_the_same(tmp_path):
    profiler = Profiler(tmp_path, (3, 5))
    profiler.at(3)
    profiler.close()
    assert len(traces(tmp_path)) == 1


def test_a_run_that_resumes_after_the_first_step_records_nothing(tmp_path):
    profiler = Profiler(tmp_path, (3, 5))
    profiler.at(5)
    profiler.close()
    assert list(tmp_path.iterdir()) == []
