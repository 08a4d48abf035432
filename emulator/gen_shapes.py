#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes emulator/shapes_data.cc from the API's contract: what the emulator serves, and nothing else.

Usage: gen_shapes.py CONTRACT.json > shapes_data.cc
"""
import json
import sys

# In the contract, but not served: verbs on groups that Flex Start groups don't allow or we never use.
NOT_SERVED = {
    'abandonInstances', 'applyUpdatesToInstances', 'deletePerInstanceConfigs', 'patchPerInstanceConfigs',
    'recreateInstances', 'resumeInstances', 'setInstanceTemplate', 'setTargetPools', 'startInstances',
    'stopInstances', 'suspendInstances', 'updatePerInstanceConfigs', 'reportHostAsFaulty', 'start',
}
HEAD = '''// SPDX-License-Identifier: GPL-2.0-or-later
// The shapes of the Compute v1 API that the emulator serves. Written by gen_shapes.py: don't edit.
#include "emulator/shapes.h"

#include <string_view>

namespace flex::emulator {

namespace {

// One literal a line: a compiler need not take more than 64 KiB in one.
// clang-format off
constexpr std::string_view kLines[] = {'''
TAIL = '''};
// clang-format on

}  // namespace

std::string shapes_json() {
  std::string text;
  for (const std::string_view line : kLines) text += line;
  return text;
}

}  // namespace flex::emulator'''


def field(spec):
    out = {'t': spec['type']}
    for long, short in (('message', 'm'), ('enum', 'e')):
        if long in spec:
            out[short] = spec[long]
    for long, short in (('repeated', 'r'), ('map', 'p'), ('outputOnly', 'o')):
        if spec.get(long):
            out[short] = 1
    return out


def closure(messages, roots):
    seen, todo = set(), [name for name in roots if name]
    while todo:
        name = todo.pop()
        if name in seen or name not in messages:
            continue
        seen.add(name)
        todo += [spec['message'] for spec in messages[name].values() if 'message' in spec]
    return seen


def shapes(contract):
    methods = {}
    for name, spec in contract['methods'].items():
        if name.split('.')[1] in NOT_SERVED:
            continue
        methods[name] = {
            'verb': spec['verb'], 'path': spec['path'], 'body': spec['body'], 'response': spec['response'],
            'query': {key: value['type'] for key, value in spec['queryParams'].items()}}
    roots = [m[key] for m in methods.values() for key in ('body', 'response')]
    messages = {name: {key: field(spec) for key, spec in contract['messages'][name].items()}
                for name in closure(contract['messages'], roots)}
    return {'standard': contract['standardQueryParams'], 'methods': methods, 'messages': messages}


def lines(tree):
    """One method or message a line, so that a change of the API is a readable diff."""
    def text(value):
        return json.dumps(value, separators=(',', ':'), sort_keys=True)
    yield '{"standard":' + text(tree['standard'])
    for part in ('methods', 'messages'):
        yield ',"%s":{' % part
        rows = sorted(tree[part].items())
        for number, (name, value) in enumerate(rows):
            yield text(name) + ':' + text(value) + ('' if number == len(rows) - 1 else ',')
        yield '}'
    yield '}'


def main():
    with open(sys.argv[1], encoding='utf-8') as file:
        tree = shapes(json.load(file))
    print(HEAD)
    for line in lines(tree):
        print('    R"~(' + line + ')~",')
    print(TAIL)


if __name__ == '__main__':
    main()
