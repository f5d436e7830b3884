"""import-crontab: names of jobs."""

from __future__ import annotations

import pytest

from scheduler.config.crontab_names import name_of


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("/usr/local/bin/backup --full", "backup"),
        ("cd /srv/app && /usr/bin/python3 manage.py clearsessions >> /var/log/x 2>&1", "manage"),
        ("flock -n /tmp/lock -c 'php artisan schedule:run'", "artisan"),
        ("/usr/bin/flock -n /tmp/x.lock /opt/sync.sh", "sync"),
        ("bash -lc 'cd /x && bundle exec rake foo'", "bundle"),
        ("pg_dump db | gzip > /backup/db.gz", "pg_dump"),
        ("nice -n 19 ionice -c3 /usr/local/bin/tidy", "tidy"),
        ("sudo -u www-data php /var/www/cron.php", "cron"),
        ("A=1 B=2 timeout 5m env X=1 ./run.sh", "run"),
        ("python3 -m http.server", "http.server"),
        ("/usr/bin/java -Xmx1g -jar /opt/app.jar", "app"),
        ("(cd /x; ./y.sh) &", "y"),
        ("command -v debian-sa1 > /dev/null && debian-sa1 1 1", "debian-sa1"),
        ("if [ -x /usr/sbin/foo ] ; then foo ; fi", "foo"),
        ("echo hi", "echo"),
        ("'unclosed", "unclosed"),
        ("*", "job"),
        ("/opt/naïve job.sh", "na-ve"),
    ],
)
def test_names(command: str, name: str) -> None:
    assert name_of(command) == name


def test_names_are_unique() -> None:
    assert name_of("x", {"x", "x-2"}) == "x-3"
