# SPDX-License-Identifier: GPL-2.0-or-later
"""Starts the emulator and talks to it: what the functional tests of the emulator share."""
import http.client
import json
import os
import signal
import subprocess
import tempfile
import time

GROUP = {
    'targetSize': 0,
    'versions': [{'instanceTemplate': 'global/instanceTemplates/a3u-flex'}],
    'distributionPolicy': {'targetShape': 'ANY_SINGLE_ZONE', 'zones': [
        {'zone': 'zones/us-central1-a'}, {'zone': 'zones/us-central1-b'}]},
    'updatePolicy': {'instanceRedistributionType': 'NONE'},
    'instanceLifecyclePolicy': {'defaultActionOnFailure': 'DO_NOTHING'},
}
TEMPLATES = {'templates': [{'name': 'a3u-flex'}], 'operation_ms': 20, 'boot_delay_ms': 20}


class Emulator:
    """One running emulator; use it in a with statement."""

    def __init__(self, program, config=None, state=None):
        self.dir = tempfile.TemporaryDirectory()
        self.command = [program, '--port', '0', '--port-file', self.path('port')]
        if config is not None:
            with open(self.path('config.json'), 'w', encoding='utf-8') as file:
                json.dump(config, file)
            self.command += ['--config', self.path('config.json')]
        if state:
            self.command += ['--state', state]
        self.process = None
        self.port = 0

    def path(self, name):
        return os.path.join(self.dir.name, name)

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        assert line.startswith('listening on http://127.0.0.1:'), line
        self.port = int(line.rsplit(':', 1)[1])
        return self

    def stop(self):
        """Ends it; returns the seconds that took."""
        begin = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=10)
        self.process.stdout.close()
        assert code == 0, code
        self.process = None
        return time.monotonic() - begin

    def __exit__(self, *_):
        if self.process:
            self.stop()
        self.dir.cleanup()

    def call(self, verb, path, body=None, headers=None, token='t'):
        """Status and JSON of one call; status 0: the connection was closed without an answer."""
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=30)
        try:
            all_headers = {'Authorization': 'Bearer ' + token} if token else {}
            all_headers.update(headers or {})
            data = None if body is None else (body if isinstance(body, (str, bytes)) else json.dumps(body))
            connection.request(verb, path, body=data, headers=all_headers)
            reply = connection.getresponse()
            text = reply.read()
            self.headers = dict(reply.getheaders())
            try:
                return reply.status, json.loads(text)
            except ValueError:
                return reply.status, text.decode(errors='replace')
        except (http.client.RemoteDisconnected, ConnectionError):
            return 0, None
        finally:
            connection.close()

    def control(self, what, body=None, verb=None):
        status, reply = self.call(verb or ('POST' if body is not None else 'GET'), '/_emulator/' + what, body)
        assert status == 200, (what, status, reply)
        return reply

    def wait(self, **wanted):
        query = '&'.join('%s=%s' % item for item in wanted.items())
        assert self.control('wait?timeout=10&' + query)['reached'], (wanted, self.control('state'))


class Api:
    """The Compute API of one place of one project."""

    def __init__(self, emulator, scope='regions/us-central1', project='p'):
        self.emulator = emulator
        self.base = '/compute/v1/projects/%s/%s' % (project, scope)

    def call(self, verb, path, body=None):
        return self.emulator.call(verb, self.base + path, body)

    def done(self, verb, path, body=None):
        """A write that must succeed, and its operation, ended."""
        status, operation = self.call(verb, path, body)
        assert status == 200, (verb, path, status, operation)
        status, ended = self.call('POST', '/operations/%s/wait' % operation['name'], '')
        assert status == 200 and ended['status'] == 'DONE', ended
        return ended

    def make_group(self, name, **changes):
        return self.done('POST', '/instanceGroupManagers', {**GROUP, 'name': name, **changes})

    def request(self, group, request, nodes, seconds=600, **changes):
        body = {'name': request, 'instances': [{'name': node} for node in nodes],
                'requestedRunDuration': {'seconds': str(seconds)}, **changes}
        return self.call('POST', '/instanceGroupManagers/%s/resizeRequests' % group, body)

    def state(self, group, name):
        return self.call('GET', '/instanceGroupManagers/%s/resizeRequests/%s' % (group, name))[1]

    def members(self, group):
        status, reply = self.call('POST', '/instanceGroupManagers/%s/listManagedInstances' % group, '')
        assert status == 200, reply
        return {item['name']: item for item in reply.get('managedInstances', [])}
