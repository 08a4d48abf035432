#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Drives flex-gce-emulator from outside: contract, life of requests, refusals, faults, gcloud.

Usage: emulator_test.py PROGRAM SOURCE_ROOT
"""
import email.utils
import json
import os
import socket
import sys
import time
import traceback
import uuid

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from emulator_client import GROUP, TEMPLATES, Api, Emulator  # noqa: E402
import emulator_contract  # noqa: E402
import emulator_gcloud  # noqa: E402

PROGRAM, ROOT = sys.argv[1], sys.argv[2]
GROUPS = '/instanceGroupManagers'


def reason(reply):
    return reply['error']['errors'][0]['reason']


def a_request_gets_all_its_vms_at_once_and_ends_succeeded():
    config = {**TEMPLATES, 'capacity': {'us-central1-a': 3, 'us-central1-b': 0},
              'operation_by_method': {'regionInstanceGroupManagerResizeRequests.insert': 1000}}
    with Emulator(PROGRAM, config) as emulator:
        api = Api(emulator)
        api.make_group('g')
        assert api.request('g', 'r', ['n1', 'n2', 'n3', 'n4'])[0] == 200
        assert api.state('g', 'r')['state'] == 'CREATING'
        emulator.wait(operations=0)
        waiting = api.state('g', 'r')
        assert waiting['state'] == 'ACCEPTED', waiting
        error = waiting['status']['lastAttempt']['error']['errors'][0]
        assert error['code'] == 'ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS', error
        assert error['errorDetails'][0]['errorInfo']['metadatas']['estimatedAvailabilityTime'].endswith('Z')
        entry = api.members('g')['n1']
        assert entry['currentAction'] == 'CREATING' and 'instance' not in entry, entry
        group = api.call('GET', GROUPS + '/g')[1]
        assert group['targetSize'] == 4 and not group['status']['isStable'], group
        assert emulator.control('state')['vms'] == []
        emulator.control('config', {'capacity': {'us-central1-b': 4}})
        emulator.wait(active_requests=0, running=4)
        assert api.state('g', 'r')['state'] == 'SUCCEEDED'
        entry = api.members('g')['n1']
        assert entry['instanceStatus'] == 'RUNNING' and entry['currentAction'] == 'NONE', entry
        assert '/zones/us-central1-b/' in entry['instance'] and entry['scheduling']['terminationTimestamp']
        assert api.call('GET', GROUPS + '/g')[1]['status']['isStable']


def a_lease_that_ends_takes_the_vm_and_shrinks_the_group():
    with Emulator(PROGRAM, TEMPLATES) as emulator:
        api = Api(emulator)
        api.make_group('g')
        api.request('g', 'r', ['n1', 'n2'], 600)
        emulator.wait(running=2)
        emulator.control('advance', {'seconds': 590})
        assert len(api.members('g')) == 2
        emulator.control('advance', {'seconds': 11})
        assert api.members('g') == {} and emulator.control('state')['vms'] == []
        assert api.call('GET', GROUPS + '/g')[1]['targetSize'] == 0
        emulator.control('config', {'keep_dead_entries': True, 'time_factor': 6000})
        api.request('g', 'r2', ['n1'], 600)
        emulator.wait(vms=1)
        emulator.wait(vms=0)
        entry = api.members('g')['n1']
        assert entry['currentAction'] == 'NONE' and 'instanceStatus' not in entry, entry
        api.done('POST', GROUPS + '/g/deleteInstances', {'instances': ['n1']})
        assert api.members('g') == {}


def cancel_takes_exactly_one_request_and_only_while_accepted():
    with Emulator(PROGRAM, {**TEMPLATES, 'capacity': {'us-central1-a': 0, 'us-central1-b': 0}}) as emulator:
        api = Api(emulator)
        api.make_group('g')
        path = GROUPS + '/g/resizeRequests'
        emulator.control('config', {'operation_ms': 300})
        api.request('g', 'r1', ['n1', 'n2'])
        status, reply = api.call('POST', path + '/r1/cancel', '')
        assert (status, reason(reply)) == (412, 'conditionNotMet') and 'CONDITION_NOT_MET' in reply['error']['message']
        emulator.control('config', {'operation_ms': 10})
        api.request('g', 'r2', ['n3'])
        emulator.wait(operations=0)
        assert api.call('DELETE', path + '/r1')[0] == 412
        status, reply = api.call('POST', GROUPS + '/g/deleteInstances', {'instances': ['n1']})
        assert status == 400 and 'cancel the request' in reply['error']['message'], reply
        api.done('POST', path + '/r1/cancel', '')
        assert api.state('g', 'r1')['state'] == 'CANCELLED'
        assert api.state('g', 'r2')['state'] == 'ACCEPTED'
        assert list(api.members('g')) == ['n3']
        assert api.call('POST', path + '/r1/cancel', '')[0] == 412
        api.done('DELETE', path + '/r1')
        assert api.call('GET', path + '/r1')[0] == 404


def deleting_a_group_waits_for_its_requests_and_takes_its_vms():
    with Emulator(PROGRAM, {**TEMPLATES, 'capacity': {'us-central1-a': 1, 'us-central1-b': 0}}) as emulator:
        api = Api(emulator)
        api.make_group('g')
        api.request('g', 'r1', ['n1'])
        emulator.wait(running=1)
        api.request('g', 'r2', ['n2'])
        emulator.wait(operations=0)
        operation = api.call('DELETE', GROUPS + '/g')[1]['name']
        time.sleep(0.2)
        assert api.call('GET', '/operations/' + operation)[1]['status'] == 'RUNNING'
        api.done('POST', GROUPS + '/g/resizeRequests/r2/cancel', '')
        api.call('POST', '/operations/%s/wait' % operation, '')
        assert api.call('GET', GROUPS + '/g')[0] == 404
        assert emulator.control('state')['vms'] == []


def delete_instances_takes_names_or_urls_never_both():
    with Emulator(PROGRAM, TEMPLATES) as emulator:
        api = Api(emulator)
        api.make_group('g')
        api.request('g', 'r', ['n1', 'n2', 'n3'])
        emulator.wait(running=3)
        url = api.members('g')['n1']['instance']
        delete = GROUPS + '/g/deleteInstances'
        assert api.call('POST', delete, {'instances': [url, 'n2']})[0] == 400
        assert api.call('POST', delete, {'instances': ['n1', 'nope']})[0] == 400
        assert api.call('POST', delete, {'instances': ['x%d' % i for i in range(1001)]})[0] == 400
        api.done('POST', delete, {'instances': ['n1', 'nope'], 'skipInstancesOnValidationError': True})
        assert sorted(api.members('g')) == ['n2', 'n3']
        api.done('POST', delete, {'instances': [api.members('g')['n2']['instance']]})
        assert api.call('GET', GROUPS + '/g')[1]['targetSize'] == 1
        emulator.control('kill_instance', {'name': 'n3'})
        entry = api.members('g')['n3']
        assert entry['currentAction'] == 'NONE' and 'instanceStatus' not in entry
        assert api.request('g', 'r2', ['n3'])[0] == 400
        api.done('POST', delete, {'instances': ['n3']})
        assert api.request('g', 'r2', ['n3'])[0] == 200


REFUSED_REQUESTS = [
    (400, {'requestedRunDuration': {'seconds': 599}}),
    (400, {'requestedRunDuration': {'seconds': '604801'}}),
    (400, {'requestedRunDuration': {'seconds': 'soon'}}),
    (400, {'resizeBy': 1}),
    (400, {'instances': []}),
    (400, {'instances': [{'name': 'n%d' % i} for i in range(1001)]}),
    (400, {'instances': [{'name': 'n'}, {'name': 'n'}]}),
    (400, {'instances': [{'name': 'Bad_Name'}]}),
    (400, {'instances': [{'nam': 'n'}]}),
    (400, {'instances': 'n'}),
    (400, {'name': 'Bad_Name'}),
    (400, {'name': 'r' * 64}),
    (400, {'unknownField': 1}),
    (400, {'requested_run_duration': {'seconds': 600}}),
    (400, {'description': 7}),
]


def what_google_refuses_is_refused_with_the_reason():
    with Emulator(PROGRAM, {**TEMPLATES, 'capacity': {'us-central1-a': 0, 'us-central1-b': 0}}) as emulator:
        api = Api(emulator)
        api.make_group('g')
        for want, change in REFUSED_REQUESTS:
            status, reply = api.request('g', 'r', ['n'], **change)
            assert status == want and reply['error']['message'], (change, status, reply)
        assert emulator.control('state')['requests'] == []
        status, reply = api.call('POST', GROUPS, {**GROUP, 'name': 'g'})
        assert (status, reason(reply)) == (409, 'alreadyExists'), reply
        assert api.call('POST', GROUPS, {**GROUP, 'name': 'h', 'versions': [{'instanceTemplate': 'nope'}]})[0] == 400
        assert api.call('POST', GROUPS, {**GROUP, 'name': 'h', 'distributionPolicy': {'targetShape': 'ROUND'}})[0] == 400
        assert api.call('GET', GROUPS + '/nope')[0] == 404
        assert api.call('GET', '/nothing/here')[0] == 400
        assert api.call('GET', GROUPS + '?color=red')[0] == 400
        assert api.call('GET', GROUPS + '?maxResults=x')[0] == 400
        assert api.call('GET', GROUPS + '?fields=items(name')[0] == 400
        assert api.call('PUT', GROUPS + '/g')[0] == 400
        assert emulator.call('GET', api.base + GROUPS, token='')[0] == 401
        api.make_group('repairing', instanceLifecyclePolicy={'defaultActionOnFailure': 'REPAIR'})
        assert api.request('repairing', 'r', ['n'])[0] == 400
        api.make_group('even', distributionPolicy={'targetShape': 'EVEN'})
        assert api.request('even', 'r', ['n'])[0] == 400
        assert api.request('g', 'r', ['n1'])[0] == 200
        assert api.request('g', 'r', ['n2'])[0] == 409
        assert api.request('g', 'r2', ['n1'])[0] == 400
        emulator.control('config', {'quota': {'ACTIVE_RESIZE_REQUESTS': 1}})
        status, reply = api.request('g', 'r2', ['n2'])
        assert (status, reason(reply)) == (403, 'quotaExceeded') and 'ACTIVE_RESIZE_REQUESTS' in str(reply)


def groups_have_their_largest_size():
    with Emulator(PROGRAM, TEMPLATES) as emulator:
        api = Api(emulator)
        api.make_group('g')
        for number in range(2):
            assert api.request('g', 'r%d' % number, ['n%d-%d' % (number, i) for i in range(1000)])[0] == 200
        status, reply = api.request('g', 'r2', ['one-more'])
        assert status == 400 and 'MAX_INSTANCES_IN_INSTANCE_GROUP' in reply['error']['message'], reply
        emulator.wait(running=2000)
        assert len(api.members('g')) == 2000
        seen, token = set(), ''
        while token is not None:
            path = '/compute/v1/projects/p/aggregated/instances?maxResults=300&pageToken=%s' % token
            page = emulator.call('GET', path)[1]
            seen |= {vm['name'] for scope in page['items'].values() for vm in scope.get('instances', [])}
            token = page.get('nextPageToken')
        assert len(seen) == 2000, len(seen)
        zonal = Api(emulator, 'zones/us-central1-c')
        zonal.done('POST', GROUPS, {key: GROUP[key] for key in ('versions', 'instanceLifecyclePolicy')} | {'name': 'z', 'targetSize': 0})
        assert zonal.request('z', 'r', ['z%d' % i for i in range(1000)])[0] == 200
        assert zonal.request('z', 'r1', ['one-more'])[0] == 400


def the_same_request_id_gives_the_first_answer():
    with Emulator(PROGRAM, TEMPLATES) as emulator:
        api = Api(emulator)
        api.make_group('g')
        query = '?requestId=%s' % uuid.uuid4()
        path = GROUPS + '/g/resizeRequests'
        body = {'name': 'r', 'resizeBy': 2, 'requestedRunDuration': {'seconds': 600}}
        emulator.control('faults', {'method': 'regionInstanceGroupManagerResizeRequests.insert', 'kind': 'lost_reply'})
        assert api.call('POST', path + query, body)[0] == 0
        first = api.call('POST', path + query, body)
        assert first[0] == 200, first
        assert api.call('POST', path + query, body)[1]['name'] == first[1]['name']
        assert api.call('POST', path + '?requestId=%s' % uuid.uuid4(), body)[0] == 409
        assert api.call('POST', path + '?requestId=7', body)[0] == 400
        assert len(api.members('g')) == 2


def faults_strike_as_ordered():
    with Emulator(PROGRAM, TEMPLATES) as emulator:
        api = Api(emulator)
        api.make_group('g')
        insert = 'regionInstanceGroupManagerResizeRequests.insert'
        emulator.control('faults', {'method': '*', 'kind': '503', 'count': 2, 'after': 1})
        assert [api.call('GET', GROUPS + '/g')[0] for _ in range(5)] == [200, 503, 503, 200, 200]
        emulator.control('faults', verb='DELETE')
        emulator.control('faults', {'method': insert, 'kind': '429', 'retry_after': 7})
        assert api.request('g', 'r', ['n1'])[0] == 429 and emulator.headers['Retry-After'] == '7'
        emulator.control('faults', {'method': insert, 'kind': 'reset'})
        assert api.request('g', 'r', ['n1'])[0] == 0 and api.members('g') == {}
        emulator.control('faults', {'method': insert, 'kind': 'operation_error', 'code': 'INVALID_ARGUMENT'})
        name = api.request('g', 'r', ['n1'])[1]['name']
        ended = api.call('POST', '/operations/%s/wait' % name, '')[1]
        assert ended['error']['errors'][0]['code'] == 'INVALID_ARGUMENT' and api.members('g') == {}
        emulator.control('faults', {'method': insert, 'kind': 'request_failed', 'code': 'LIMIT_EXCEEDED'})
        api.request('g', 'r', ['n1'])
        emulator.wait(operations=0)
        failed = api.state('g', 'r')
        assert failed['state'] == 'FAILED' and failed['status']['error']['errors'][0]['code'] == 'LIMIT_EXCEEDED'
        assert api.members('g') == {} and api.call('GET', GROUPS + '/g')[1]['targetSize'] == 0
        emulator.control('faults', {'method': '*', 'kind': 'latency', 'ms': 200})
        begin = time.monotonic()
        api.call('GET', GROUPS + '/g')
        assert time.monotonic() - begin >= 0.2
        journal = emulator.control('journal')
        assert [e['fault'] for e in journal if e['fault']][:3] == ['503', '503', '429']
        assert {e['method'] for e in journal} >= {insert, 'regionOperations.wait'}
        assert emulator.call('POST', '/_emulator/faults', {'kind': 'nonsense'})[0] == 400


def a_call_is_held_until_its_client_dies():
    with Emulator(PROGRAM, TEMPLATES) as emulator:
        api = Api(emulator)
        for kind, name, is_there in (('hold_before', 'before', 404), ('hold_after', 'after', 200)):
            emulator.control('faults', {'method': 'regionInstanceGroupManagers.insert', 'kind': kind})
            body = json.dumps({**GROUP, 'name': name})
            with socket.create_connection(('127.0.0.1', emulator.port)) as client:
                client.sendall(('POST %s%s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer t\r\nContent-Length: %d\r\n\r\n%s'
                                % (api.base, GROUPS, len(body), body)).encode())
                emulator.wait(held=1)
                assert emulator.control('faults')[-1]['hits'] == 1
                assert api.call('GET', GROUPS + '/' + name)[0] == is_there
                client.settimeout(0.1)
                try:
                    raise AssertionError(client.recv(1))
                except TimeoutError:
                    pass
            emulator.wait(held=0)
            assert api.call('GET', GROUPS + '/' + name)[0] == is_there
            assert [(e['fault'], e['status']) for e in emulator.control('journal') if e['fault']][-1] == (kind, 0)


def answers_are_quick_and_waits_end_on_time():
    with Emulator(PROGRAM, {**TEMPLATES, 'operation_ms': 200}) as emulator:
        api = Api(emulator)
        begin = time.monotonic()
        api.make_group('g')
        took = time.monotonic() - begin
        assert 0.2 <= took < 0.4, took


def long_answers_are_compressed_where_that_is_welcome():
    with Emulator(PROGRAM, TEMPLATES) as emulator:
        path = '/compute/v1/projects/p/zones'
        emulator.call('GET', path, headers={'Accept-Encoding': 'gzip'})
        assert emulator.headers.get('Content-Encoding') == 'gzip', emulator.headers
        emulator.call('GET', path)
        assert 'Content-Encoding' not in emulator.headers


def state_survives_a_restart():
    with Emulator(PROGRAM, TEMPLATES) as first:
        state = first.path('state.json')
        config = {**TEMPLATES, 'capacity': {'us-central1-a': 2, 'us-central1-b': 0}}
        with Emulator(PROGRAM, config, state) as emulator:
            api = Api(emulator)
            api.make_group('g')
            api.request('g', 'r1', ['n1', 'n2'])
            emulator.wait(running=2)
            api.request('g', 'r2', ['n3'])
            emulator.wait(operations=0)
            before = emulator.control('state')
            assert emulator.stop() < 1
        with Emulator(PROGRAM, config, state) as emulator:
            after = emulator.control('state')
            for part in ('groups', 'requests', 'vms', 'templates'):
                drop = ('created', 'ends', 'finished', 'last_attempt')
                clean = [[{k: v for k, v in item.items() if k not in drop} if isinstance(item, dict) else item
                          for item in dump[part]] for dump in (before, after)]
                assert clean[0] == clean[1], clean
            Api(emulator).done('POST', GROUPS + '/g/deleteInstances', {'instances': ['n1']})
            emulator.wait(active_requests=0, running=2)


def the_hook_is_run_when_a_vm_is_up_and_when_it_is_gone():
    with Emulator(PROGRAM, {**TEMPLATES, 'boot_failure': ['n3']}) as emulator:
        log = emulator.path('log')
        script = emulator.path('hook')
        with open(script, 'w', encoding='utf-8') as file:
            file.write('#!/bin/sh\necho "$@" >> "%s"\n' % log)
        os.chmod(script, 0o755)
        emulator.control('config', {'hook': [script, 'extra word']})
        api = Api(emulator)
        api.make_group('g')
        api.request('g', 'r', ['n1', 'n2', 'n3'])
        emulator.wait(running=3)
        api.done('POST', GROUPS + '/g/deleteInstances', {'instances': ['n1', 'n3']})
        api.done('POST', '/instances/bulkInsert', bulk(['n4'], 1))
        emulator.wait(running=2)
        Api(emulator, 'zones/us-central1-a').done('DELETE', '/instances/n4')
        deadline = time.monotonic() + 5
        want = ['extra word down n1 us-central1-a g', 'extra word down n4 us-central1-a ',
                'extra word up n1 us-central1-a g', 'extra word up n2 us-central1-a g',
                'extra word up n4 us-central1-a ']
        lines = []
        while sorted(lines) != want and time.monotonic() < deadline:
            time.sleep(0.05)
            if os.path.exists(log):
                with open(log, encoding='utf-8') as file:
                    lines = file.read().splitlines()
        assert sorted(lines) == want, lines


def tokens_come_from_the_metadata_server_and_from_oauth():
    with Emulator(PROGRAM, {**TEMPLATES, 'strict_tokens': True, 'project': 'my-project'}) as emulator:
        path = '/computeMetadata/v1/instance/service-accounts/default/token'
        assert emulator.call('GET', path)[0] == 403
        flavor = {'Metadata-Flavor': 'Google'}
        status, token = emulator.call('GET', path, headers=flavor)
        assert status == 200 and emulator.headers['Metadata-Flavor'] == 'Google'
        regions = '/compute/v1/projects/p/regions'
        assert emulator.call('GET', regions, token='made-up')[0] == 401
        assert emulator.call('GET', regions, token=token['access_token'])[0] == 200
        assert emulator.call('GET', '/computeMetadata/v1/project/project-id', headers=flavor)[1] == 'my-project'
        form = {'Content-Type': 'application/x-www-form-urlencoded'}
        grant = 'grant_type=refresh_token&refresh_token=r&client_id=c&client_secret=s'
        status, token = emulator.call('POST', '/_emulator/oauth/token', grant, form)
        assert status == 200 and emulator.call('GET', regions, token=token['access_token'])[0] == 200
        grant = 'grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion='
        assert emulator.call('POST', '/token', grant + 'a.b', form)[0] == 400
        # {"alg":"RS256"} . {"iss":"a","aud":"b","iat":1,"exp":3601} . signature
        jwt = 'eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJhIiwiYXVkIjoiYiIsImlhdCI6MSwiZXhwIjozNjAxfQ.c2ln'
        assert emulator.call('POST', '/token', grant + jwt, form)[0] == 200


def the_metadata_server_lists_directories_and_all_below_them():
    flavor = {'Metadata-Flavor': 'Google'}
    with Emulator(PROGRAM, {**TEMPLATES, 'project': 'my-project', 'zone': 'us-east4-a'}) as emulator:
        def get(path):
            status, reply = emulator.call('GET', '/computeMetadata/v1' + path, headers=flavor)
            assert emulator.headers['Metadata-Flavor'] == 'Google'
            return status, reply

        assert get('/') == get('') == (200, 'instance/\nproject/\nuniverse/\n')
        assert get('/instance') == get('/instance/')
        names = get('/instance/')[1].splitlines()
        assert {'zone', 'id', 'name', 'service-accounts/', 'attributes/'} <= set(names), names
        assert get('/universe/universe-domain') == (200, 'googleapis.com')
        assert get('/instance/zone') == (200, 'projects/123456789012/zones/us-east4-a')
        accounts = get('/instance/service-accounts/')[1].split()
        assert accounts[-1] == 'default/' and accounts[0].endswith('gserviceaccount.com/'), accounts
        assert get('/instance/service-accounts/default/')[1].split() == ['aliases', 'email', 'scopes', 'token']
        assert get('/instance/service-accounts/' + accounts[0] + 'token')[1]['token_type'] == 'Bearer'
        status, account = get('/instance/service-accounts/default/?recursive=true')
        assert status == 200 and account['aliases'] == ['default'] and account['email'] + '/' == accounts[0], account
        everything = get('/?recursive=true')[1]
        assert everything['project']['projectId'] == 'my-project', everything
        assert everything['instance']['serviceAccounts']['default'] == account
        assert everything['universe'] == {'universeDomain': 'googleapis.com'}
        assert emulator.call('GET', '/computeMetadata/v1/project/project-id?alt=json', headers=flavor)[1] == 'my-project'
        for path in ('/nothing', '/instance/nothing', '/instance/zone/more', '/instance/service-accounts/other/token'):
            assert get(path)[0] == 404, path
        assert emulator.call('GET', '/computeMetadata/v1/instance')[0] == 403


def what_googles_clients_send_is_taken_and_what_google_refuses_is_not():
    with Emulator(PROGRAM, {**TEMPLATES, 'capacity': {'us-central1-a': 0, 'us-central1-b': 0}}) as emulator:
        api = Api(emulator)
        api.make_group('g')
        path = '/instanceGroupManagers/g/listManagedInstances'
        whole = {'project': 'p', 'region': 'us-central1', 'instance_group_manager': 'g', 'instanceGroupManager': 'g', 'max_results': 0}
        for body in (None, '', '{}', '""', whole):
            assert api.call('POST', path, body)[0] == 200, body
        for body in ('[]', '7', '"x"', 'null', '{', {'colour': 'red'}, {'instance_group_managr': 'g'}, {'instances': []}):
            assert api.call('POST', path, body)[0] == 400, body
        # google-cloud-cpp: names in snake_case, also of what is not said.
        assert api.call('GET', '/instanceGroupManagers?max_results=0&page_token=&return_partial_success=false&order_by=&filter=')[0] == 200
        one = 'request_id=8a8f1c56-9d0a-4e1c-9e39-7a27d4a3a00a'
        body = {'name': 'r', 'instances': [{'name': 'n1'}], 'requestedRunDuration': {'seconds': '600'}}
        first = api.call('POST', '/instanceGroupManagers/g/resizeRequests?' + one, body)
        again = api.call('POST', '/instanceGroupManagers/g/resizeRequests?' + one, body)
        assert first[0] == again[0] == 200 and first[1]['name'] == again[1]['name'], (first, again)
        emulator.wait(operations=0)
        cancel = '/instanceGroupManagers/g/resizeRequests/r/cancel'
        assert api.call('POST', cancel, {**{key: whole[key] for key in ('project', 'region')}, 'resize_request': 'r', 'colour': 1})[0] == 400
        status, operation = api.call('POST', cancel, {'project': 'p', 'region': 'us-central1', 'instance_group_manager': 'g', 'resize_request': 'r'})
        assert status == 200, operation
        assert api.call('POST', '/operations/%s/wait' % operation['name'], {'project': 'p', 'operation': operation['name']})[0] == 200
        for query in ('request_idd=1', 'requestid=1', 'max_result=1', 'max_results=x', 'max_results=1&maxResults=1', 'Max_results=1'):
            assert api.call('GET', '/instanceGroupManagers?' + query)[0] == 400, query
        assert api.call('POST', '/instanceGroupManagers/g/resizeRequests?request_id=no-uuid', body)[0] == 400


MARK = 'slurm-flex-start cluster=hpc nodeset=h4d job=7'


def bulk(nodes, least, **changes):
    return {'count': str(len(nodes)), 'minCount': str(least), 'perInstanceProperties': {node: {} for node in nodes},
            'sourceInstanceTemplate': 'projects/p/global/instanceTemplates/a3u-flex',
            'instanceProperties': {'description': MARK, 'scheduling': {
                'maxRunDuration': {'seconds': '600'}, 'instanceTerminationAction': 'DELETE'}},
            'locationPolicy': {'targetShape': 'ANY_SINGLE_ZONE',
                               'locations': {'zones/us-central1-a': {'preference': 'ALLOW'}},
                               'zones': [{'zone': 'zones/us-central1-a'}]}, **changes}


def codes(ended):
    return [error['code'] for error in ended.get('error', {}).get('errors', [])]


def vms_come_one_by_one_where_the_group_says_so():
    with Emulator(PROGRAM, {**TEMPLATES, 'capacity': {'us-central1-a': 1, 'us-central1-b': 1}}) as emulator:
        api = Api(emulator)
        api.make_group('g', targetSizePolicy={'mode': 'INDIVIDUAL'},
                       distributionPolicy={**GROUP['distributionPolicy'], 'targetShape': 'ANY'})
        assert api.call('GET', GROUPS + '/g?fields=targetSizePolicy/mode')[1] == {'targetSizePolicy': {'mode': 'INDIVIDUAL'}}
        create = GROUPS + '/g/createInstances'
        api.done('POST', create, {'instances': [{'name': 'n%d' % i} for i in (1, 2, 3, 4)]})
        emulator.wait(running=2)
        members = api.members('g')
        assert {members[n]['instance'].split('/')[-3] for n in ('n1', 'n2')} == {'us-central1-a', 'us-central1-b'}
        assert members['n1']['scheduling']['terminationTimestamp'] and 'lastAttempt' not in members['n1']
        entry = members['n3']
        assert entry['currentAction'] == 'CREATING' and 'instance' not in entry, entry
        assert entry['lastAttempt']['errors']['errors'][0]['code'] == 'ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS'
        status, reply = api.call('POST', create, {'instances': [{'name': 'n5'}, {'name': 'n3'}]})
        assert (status, reason(reply)) == (400, 'invalid') and 'already exists' in reply['error']['message'], reply
        assert 'n5' not in api.members('g')
        api.done('POST', GROUPS + '/g/deleteInstances', {'instances': ['n3']})
        api.done('POST', GROUPS + '/g/deleteInstances', {'instances': [members['n1']['instance']]})
        emulator.wait(running=2)
        members = api.members('g')
        assert sorted(members) == ['n2', 'n4'] and members['n4']['instanceStatus'] == 'RUNNING', members
        assert api.call('GET', GROUPS + '/g')[1]['targetSize'] == 2


def vms_without_a_group_are_all_there_or_none():
    config = {**TEMPLATES, 'capacity': {'us-central1-a': 2}, 'operation_by_method': {'regionInstances.bulkInsert': 1000}}
    with Emulator(PROGRAM, config) as emulator:
        api = Api(emulator)
        zone = Api(emulator, 'zones/us-central1-a')
        name = api.call('POST', '/instances/bulkInsert', bulk(['n1', 'n2', 'n3'], 3))[1]['name']
        under_way = '/operations?filter=(operationType%20=%20%22bulkInsert%22)%20AND%20(status%20!=%20%22DONE%22)'
        assert [item['name'] for item in api.call('GET', under_way)[1]['items']] == [name]
        ended = api.call('POST', '/operations/%s/wait' % name, '')[1]
        assert 'items' not in api.call('GET', under_way)[1]
        assert codes(ended) == ['VM_MIN_COUNT_NOT_REACHED', 'ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS'], ended
        status = ended['instancesBulkInsertOperationMetadata']['perLocationStatus']['zones/us-central1-a']
        assert (status['targetVmCount'], status['createdVmCount'], status['failedToCreateVmCount']) == (3, 2, 1), status
        assert emulator.control('state')['vms'] == []
        ended = api.done('POST', '/instances/bulkInsert', bulk(['n1', 'n2', 'n3'], 1))
        assert codes(ended) == [], ended
        emulator.wait(running=2)
        assert codes(api.done('POST', '/instances/bulkInsert', bulk(['n1'], 1))) == [
            'VM_MIN_COUNT_NOT_REACHED', 'RESOURCE_ALREADY_EXISTS']
        for body in (bulk(['n4'], 2), bulk(['n4'], 1, count='2'), bulk(['n4'], 1, sourceInstanceTemplate='nope'),
                     bulk(['n4'], 1, locationPolicy={'zones': [{'zone': 'zones/europe-west4-a'}]}),
                     bulk(['Bad_Name'], 1)):
            assert api.call('POST', '/instances/bulkInsert', body)[0] == 400, body
        Api(emulator, 'zones/us-central1-b').done('POST', '/instances', {'name': 'stranger', 'description': 'mine'})
        path = ('/compute/v1/projects/p/aggregated/instances?returnPartialSuccess=false&maxResults=1&fields='
                'items/*/instances(name,description,status,resourceStatus/scheduling/terminationTimestamp),'
                'items/*/warning/code,nextPageToken,warning/code,unreachables&filter=description%20eq%20%22'
                'slurm-flex-start%20cluster=hpc%20nodeset=.*%22')
        seen, token = [], ''
        while True:
            page = emulator.call('GET', path + token)[1]
            seen += page['items']['zones/us-central1-a'].get('instances', [])
            assert page['items']['zones/us-central1-b']['warning']['code'] == 'NO_RESULTS_ON_PAGE'
            if 'nextPageToken' not in page:
                break
            token = '&pageToken=' + page['nextPageToken']
        assert [vm['name'] for vm in seen] == ['n1', 'n2'], seen
        assert all(vm['description'] == MARK and vm['status'] == 'RUNNING' for vm in seen), seen
        assert all(vm['resourceStatus']['scheduling']['terminationTimestamp'] for vm in seen), seen
        ended = zone.done('DELETE', '/instances/n1')
        assert ended['zone'].endswith('/zones/us-central1-a'), ended
        assert zone.call('DELETE', '/instances/n1')[0] == 404
        emulator.control('advance', {'seconds': 601})
        emulator.wait(vms=1)  # the stranger has no end


def workload_policies_stay_while_a_group_uses_them():
    with Emulator(PROGRAM, TEMPLATES) as emulator:
        api = Api(emulator)
        policy = {'name': 'hpc-w', 'description': MARK,
                  'workloadPolicy': {'type': 'HIGH_THROUGHPUT', 'maxTopologyDistance': 'SUBBLOCK'}}
        use = {'resourcePolicies': {'workloadPolicy': 'projects/p/regions/us-central1/resourcePolicies/hpc-w'}}
        assert api.call('POST', GROUPS, {**GROUP, 'name': 'g', **use})[0] == 400
        assert api.call('POST', '/resourcePolicies', {'name': 'x', 'workloadPolicy': {'type': 'NEAR'}})[0] == 400
        api.done('POST', '/resourcePolicies', policy)
        assert api.call('POST', '/resourcePolicies', policy)[0] == 409
        api.done('POST', '/resourcePolicies', {'name': 'other', 'workloadPolicy': {'type': 'HIGH_AVAILABILITY'}})
        listed = api.call('GET', '/resourcePolicies?filter=name%20eq%20%22hpc-.*%22')[1]['items']
        assert [item['name'] for item in listed] == ['hpc-w'] and listed[0]['creationTimestamp'], listed
        api.make_group('g', **use)
        status, reply = api.call('DELETE', '/resourcePolicies/hpc-w')
        assert (status, reason(reply)) == (400, 'resourceInUseByAnotherResource'), reply
        api.done('DELETE', GROUPS + '/g')
        api.done('DELETE', '/resourcePolicies/hpc-w')
        assert api.call('GET', '/resourcePolicies/hpc-w')[0] == 404


def faults_strike_every_way_of_asking_for_vms():
    with Emulator(PROGRAM, TEMPLATES) as emulator:
        api = Api(emulator)
        api.make_group('g', targetSizePolicy={'mode': 'INDIVIDUAL'})
        policy = {'name': 'w', 'workloadPolicy': {'type': 'HIGH_THROUGHPUT'}}
        writes = [('regionInstanceGroupManagers.createInstances', GROUPS + '/g/createInstances', {'instances': [{'name': 'n1'}]}),
                  ('regionInstances.bulkInsert', '/instances/bulkInsert', bulk(['n2'], 1)),
                  ('resourcePolicies.insert', '/resourcePolicies', policy)]

        def things():
            emulator.wait(operations=0)
            state = emulator.control('state')
            return len(state['vms']) + len(state['policies'])

        for count, (method, path, body) in enumerate(writes):
            emulator.control('faults', {'method': method, 'kind': 'operation_error', 'code': 'INTERNAL_ERROR'})
            assert codes(api.done('POST', path, body)) == ['INTERNAL_ERROR'], method
            assert things() == count, method
            emulator.control('faults', {'method': method, 'kind': 'reset'})
            assert api.call('POST', path, body)[0] == 0 and things() == count, method
            emulator.control('faults', {'method': method, 'kind': 'lost_reply'})
            request = '?requestId=%s' % uuid.uuid4()
            assert api.call('POST', path + request, body)[0] == 0 and things() == count + 1, method
            # The same again, as a client does that has had no answer: it is one and the same.
            assert codes(api.done('POST', path + request, body)) == [] and things() == count + 1, method
        for kind, node, is_made in (('hold_before', 'h1', False), ('hold_after', 'h2', True)):
            emulator.control('faults', {'method': 'regionInstances.bulkInsert', 'kind': kind})
            body = json.dumps(bulk([node], 1))
            with socket.create_connection(('127.0.0.1', emulator.port)) as client:
                client.sendall(('POST %s/instances/bulkInsert HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer t\r\n'
                                'Content-Length: %d\r\n\r\n%s' % (api.base, len(body), body)).encode())
                emulator.wait(held=1)
            emulator.wait(held=0, operations=0)
            names = {vm['name'] for vm in emulator.control('state')['vms']}
            assert (node in names) == is_made, (kind, names)


def other_resources_live():
    with Emulator(PROGRAM, TEMPLATES) as emulator:
        api = Api(emulator)
        zone = Api(emulator, 'zones/us-central1-a')
        everywhere = Api(emulator, 'global')
        everywhere.done('POST', '/instanceTemplates', {'name': 't', 'properties': {'machineType': 'n1-standard-1', 'scheduling': {'provisioningModel': 'FLEX_START', 'maxRunDuration': {'seconds': '600'}}}})
        api.done('POST', '/instanceTemplates', {'name': 'rt', 'properties': {'machineType': 'n1-standard-1'}})
        names = {item['name'] for item in everywhere.call('GET', '/instanceTemplates')[1]['items']}
        assert names == {'t', 'a3u-flex'}, names
        api.done('POST', '/resourcePolicies', {'name': 'w', 'workloadPolicy': {'type': 'HIGH_THROUGHPUT', 'maxTopologyDistance': 'BLOCK'}})
        assert api.call('GET', '/resourcePolicies/w')[1]['workloadPolicy']['type'] == 'HIGH_THROUGHPUT'
        api.done('DELETE', '/resourcePolicies/w')
        zone.done('POST', '/instances', {'name': 'vm', 'machineType': 'zones/us-central1-a/machineTypes/n1-standard-1'})
        assert zone.call('GET', '/instances/vm')[0] == 200 and zone.call('POST', '/instances', {'name': 'vm'})[0] == 409
        assert 'booting' in zone.call('GET', '/instances/vm/serialPort')[1]['contents']
        ended = api.done('POST', '/instances/bulkInsert', {'count': '3', 'namePattern': 'b-##', 'sourceInstanceTemplate': 'global/instanceTemplates/t', 'locationPolicy': {'zones': [{'zone': 'zones/us-central1-b'}]}, 'instanceProperties': {'scheduling': {'instanceTerminationAction': 'DELETE'}}})
        assert ended['instancesBulkInsertOperationMetadata']['perLocationStatus']['zones/us-central1-b']['createdVmCount'] == 3
        zone.done('DELETE', '/instances/vm')
        emulator.wait(running=3)
        names = [i['name'] for i in Api(emulator, 'zones/us-central1-b').call('GET', '/instances?filter=name%20eq%20%22b-0%5B12%5D%22')[1]['items']]
        assert names == ['b-01', 'b-02'], names
        api.make_group('g')
        api.done('POST', GROUPS + '/g/createInstances', {'instances': [{'name': 'c1'}]})
        api.done('POST', GROUPS + '/g/resize?size=3', '')
        emulator.wait(running=6)
        api.done('POST', GROUPS + '/g/resize?size=0', '')
        assert api.members('g') == {}
        # A VM of somebody else with the same name: the request fails and leaves nothing.
        zone.done('POST', '/instances', {'name': 'taken'})
        Api(emulator, 'zones/us-central1-b').done('POST', '/instances', {'name': 'taken'})
        api.request('g', 'r', ['taken'])
        emulator.wait(operations=0, active_requests=0)
        assert api.state('g', 'r')['state'] == 'FAILED' and api.members('g') == {}
        assert api.call('GET', '')[1]['quotas'] is not None
        lists = ['', '/aggregated/instanceGroupManagers', '/aggregated/instances', '/aggregated/operations',
                 '/aggregated/instanceTemplates', '/aggregated/resourcePolicies', '/aggregated/instanceGroups',
                 '/aggregated/autoscalers', '/aggregated/machineTypes', '/regions', '/zones', '/global/operations']
        for path in lists:
            status, reply = emulator.call('GET', '/compute/v1/projects/p' + path)
            assert status == 200, (path, reply)


def permissions_are_denied_whether_or_not_the_thing_is_there():
    denied = ['compute.instanceGroupManagers.delete', 'compute.instances.create', 'compute.regions.get']
    with Emulator(PROGRAM, {**TEMPLATES, 'denied_permissions': denied}) as emulator:
        api = Api(emulator)
        status, reply = api.call('DELETE', GROUPS + '/nobody')
        assert (status, reason(reply)) == (403, 'forbidden'), reply
        assert reply['error']['message'] == (
            "Required 'compute.instanceGroupManagers.delete' permission for "
            "'projects/p/regions/us-central1/instanceGroupManagers/nobody'"), reply
        # What a group's insert needs of its caller, too.
        assert 'compute.instances.create' in api.call('POST', GROUPS, {**GROUP, 'name': 'g'})[1]['error']['message']
        assert api.call('GET', '')[0] == 403 and api.call('GET', GROUPS + '/nobody')[0] == 404
        emulator.control('config', {'denied_permissions': None})
        assert api.call('DELETE', GROUPS + '/nobody')[0] == 404 and api.call('GET', '')[0] == 200
        emulator.control('config', {'lacks_scopes': True})
        status, reply = api.call('GET', '')
        assert (status, reason(reply)) == (403, 'insufficientPermissions'), reply


def places_have_machine_types_status_and_a_clock():
    config = {**TEMPLATES, 'zones_down': ['us-central1-b'], 'machine_types': {'us-central1-b': ['n1-standard-1']},
              'clock_skew_seconds': -3600, 'quota': {'PREEMPTIBLE_NVIDIA_H100_GPUS': 16}}
    with Emulator(PROGRAM, config) as emulator:
        a, b = Api(emulator, 'zones/us-central1-a'), Api(emulator, 'zones/us-central1-b')
        assert (a.call('GET', '')[1]['status'], b.call('GET', '')[1]['status']) == ('UP', 'DOWN')
        machine = a.call('GET', '/machineTypes/a3-highgpu-8g')[1]
        assert machine['guestCpus'] == 208, machine
        assert machine['accelerators'] == [{'guestAcceleratorType': 'nvidia-h100-80gb', 'guestAcceleratorCount': 8}], machine
        assert b.call('GET', '/machineTypes/a3-highgpu-8g')[0] == 404 and a.call('GET', '/machineTypes/x9-mega')[0] == 404
        assert [item['name'] for item in b.call('GET', '/machineTypes')[1]['items']] == ['n1-standard-1']
        quotas = Api(emulator).call('GET', '')[1]['quotas']
        assert {'metric': 'PREEMPTIBLE_NVIDIA_H100_GPUS', 'limit': 16.0, 'usage': 0.0} in quotas, quotas
        date = email.utils.parsedate_to_datetime(emulator.headers['Date'])
        assert abs(date.timestamp() + 3600 - time.time()) < 60, date


def a_policy_of_no_sort_is_refused():
    with Emulator(PROGRAM, TEMPLATES) as emulator:
        assert Api(emulator).call('POST', '/resourcePolicies', {'name': 'nothing'})[0] == 400


TESTS = [value for name, value in list(globals().items())
         if callable(value) and value.__module__ == '__main__' and name not in ('reason', 'bulk', 'codes')]


def main():
    passed = failed = 0
    extra = emulator_contract.tests(PROGRAM, ROOT) + emulator_gcloud.tests(PROGRAM)
    for name, test in [(test.__name__, test) for test in TESTS] + extra:
        try:
            test()
            passed += 1
        except Exception:  # one broken test must not hide the others
            failed += 1
            print('FAIL %s' % name.replace('_', ' '))
            traceback.print_exc(file=sys.stdout)
    print('%d passed, %d failed' % (passed, failed))
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
