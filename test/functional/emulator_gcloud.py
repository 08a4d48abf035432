# SPDX-License-Identifier: GPL-2.0-or-later
"""Real gcloud against the emulator, where gcloud is installed."""
import json
import os
import shutil
import subprocess

from emulator_client import Emulator

MANAGED = ['compute', 'instance-groups', 'managed']
REGION = ['--region', 'us-central1']
ZONE = ['--zone', 'us-central1-a']


class Gcloud:
    def __init__(self, program, emulator):
        self.program = program
        token = emulator.path('token')
        with open(token, 'w', encoding='utf-8') as file:
            file.write('a-token\n')
        self.environment = {
            **os.environ,
            'CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE': 'http://127.0.0.1:%d/compute/v1/' % emulator.port,
            'CLOUDSDK_AUTH_ACCESS_TOKEN_FILE': token,
            'CLOUDSDK_CONFIG': emulator.path('gcloud'),
            'CLOUDSDK_CORE_PROJECT': 'p',
            'CLOUDSDK_CORE_DISABLE_PROMPTS': '1',
            'CLOUDSDK_CORE_DISABLE_USAGE_REPORTING': '1',
            'CLOUDSDK_COMPONENT_MANAGER_DISABLE_UPDATE_CHECK': '1',
        }

    def run(self, *words):
        """The answer of a command that must succeed, as JSON."""
        done = subprocess.run([self.program, *words, '--format=json'], env=self.environment, text=True,
                              capture_output=True, timeout=120, check=False)
        assert done.returncode == 0, (words, done.stderr)
        return json.loads(done.stdout) if done.stdout.strip() else None

    def names(self, *words):
        return sorted(item['name'] for item in self.run(*words))

    def has_regional_requests(self):
        """Regional requests came to the released track after the beta one."""
        done = subprocess.run([self.program, *MANAGED, 'resize-requests', 'create', '--help'], text=True,
                              env=self.environment, capture_output=True, timeout=120, check=False)
        return '--region' in done.stdout


def live_through(gcloud, track, group, place, names):
    requests = [*track, *MANAGED, 'resize-requests']
    how_many = ['--instances=' + ','.join(names)] if track else ['--resize-by=%d' % len(names)]
    gcloud.run(*requests, 'create', group, *place, '--resize-request=r1', '--requested-run-duration=1h', *how_many)
    gcloud.run(*requests, 'create', group, *place, '--resize-request=r2', '--requested-run-duration=2h', '--resize-by=9')
    states = {item['name']: item['state'] for item in gcloud.run(*requests, 'list', group, *place)}
    assert states == {'r1': 'SUCCEEDED', 'r2': 'ACCEPTED'}, states
    waiting = gcloud.run(*requests, 'describe', group, *place, '--resize-request=r2')
    assert waiting['requestedRunDuration']['seconds'] == '7200' and waiting['status']['lastAttempt'], waiting
    gcloud.run(*requests, 'cancel', group, *place, '--resize-requests=r2')
    assert gcloud.run(*requests, 'describe', group, *place, '--resize-request=r2')['state'] == 'CANCELLED'
    gcloud.run(*requests, 'delete', group, *place, '--resize-requests=r2')
    assert gcloud.names(*requests, 'list', group, *place) == ['r1']
    listed = gcloud.names(*MANAGED, 'list-instances', group, *place)
    assert len(listed) == len(names) and (not track or listed == names), listed
    gcloud.run(*MANAGED, 'delete-instances', group, *place, '--instances=' + listed[0])
    assert gcloud.names(*MANAGED, 'list-instances', group, *place) == listed[1:]


def drive(program, path):
    config = {'operation_ms': 20, 'boot_delay_ms': 20, 'capacity': {'us-central1-a': 5, 'us-central1-b': 0}}
    with Emulator(program, config) as emulator:
        gcloud = Gcloud(path, emulator)
        assert 'us-central1' in gcloud.names('compute', 'regions', 'list')
        assert 'us-central1-a' in gcloud.names('compute', 'zones', 'list')
        gcloud.run('compute', 'instance-templates', 'create', 't', '--machine-type=a3-ultragpu-8g',
                   '--disk=name=boot,boot=yes', '--max-run-duration=7d', '--instance-termination-action=DELETE',
                   '--no-restart-on-failure', '--maintenance-policy=TERMINATE', '--reservation-affinity=none')
        assert gcloud.names('compute', 'instance-templates', 'list') == ['t']
        gcloud.run(*MANAGED, 'create', 'g', *REGION, '--template=t', '--size=0', '--zones=us-central1-a,us-central1-b',
                   '--target-distribution-shape=any-single-zone', '--instance-redistribution-type=none',
                   '--default-action-on-vm-failure=do-nothing')
        gcloud.run(*MANAGED, 'create', 'z', *ZONE, '--template=t', '--size=0',
                   '--default-action-on-vm-failure=do-nothing')
        assert gcloud.names(*MANAGED, 'list') == ['g', 'z']
        assert gcloud.run(*MANAGED, 'describe', 'g', *REGION)['status']['isStable']
        live_through(gcloud, [], 'z', ZONE, ['z1', 'z2'])
        live_through(gcloud, [] if gcloud.has_regional_requests() else ['beta'], 'g', REGION, ['n1', 'n2'])
        assert len(gcloud.run('compute', 'instances', 'list')) == 2
        assert len(gcloud.run('compute', 'operations', 'list')) >= 13
        gcloud.run(*MANAGED, 'delete', 'z', *ZONE)
        gcloud.run(*MANAGED, 'delete', 'g', *REGION)
        gcloud.run('compute', 'instance-templates', 'delete', 't')
        state = emulator.control('state')
        assert not state['groups'] and not state['vms'] and not state['templates'], state
        refused = [entry for entry in emulator.control('journal') if entry['status'] >= 400]
        assert not refused, refused


def tests(program):
    path = shutil.which('gcloud')
    if not path:
        print('SKIP gcloud is not installed')
        return []
    return [('gcloud works against the emulator', lambda: drive(program, path))]
