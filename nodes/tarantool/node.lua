-- Real Tarantool as a node: it answers the calls that the reference node answers, so that clients are the same.
--
--   tarantool node.lua CONFIG DATA LISTEN NAME=ADDRESS...
--
-- CONFIG is JSON (harness/systems/tarantool/system.py writes it), DATA the folder for its files, LISTEN its own address,
-- then the address of each other node. The first line on stdout says {"ready": true, "port": N}. The process ends
-- when its stdin does.
--
-- | function            | answer                                                                              |
-- |---------------------|-------------------------------------------------------------------------------------|
-- | qsync.transaction   | as in nodes/qsync/service.py; what it reads is what memory holds, confirmed or not  |
-- | qsync.dump          | spaces -> name -> all tuples                                                        |
-- | qsync.status        | what the node says of itself                                                        |
-- | qsync.take_over     | the operator makes this node the master, as generation N (without elections)        |
-- | qsync.cfg           | options, by their names in box.cfg; with a table it changes them                     |
-- | qsync.step_down     | the operator makes this node read-only                                              |
-- | qsync.resume        | the operator starts replication anew that had stopped                           |
-- | qsync.remove_member | the operator deletes the member of this id from _cluster, on the master              |
-- | qsync.set_members   | the operator says whom to replicate from, and how many make a quorum                 |

local fiber = require('fiber')
local fio = require('fio')
local json = require('json')
local socket = require('socket')

local config_path, data, listen = arg[1], arg[2], arg[3]
local config = json.decode(assert(io.open(config_path)):read('*a'))

-- ---- the version: a configuration is of some versions and of no others

local function numbers(version)
    local found = {}
    for number in version:gmatch('%d+') do
        table.insert(found, tonumber(number))
        if #found == 3 then break end
    end
    return found
end

local function is_at_least(wanted)
    local here, there = numbers(_TARANTOOL), numbers(wanted)
    for place = 1, 3 do
        if (here[place] or 0) ~= (there[place] or 0) then return (here[place] or 0) > (there[place] or 0) end
    end
    return true
end

local function refuse_other_versions(versions)
    local is_new = versions.below ~= '' and is_at_least(versions.below)
    if is_at_least(versions.least) and not is_new then return end
    local range = versions.below == '' and 'on' or 'to below ' .. versions.below
    local said = string.format('configuration %s is of Tarantool from %s %s, and this is %s; try: %s',
        versions.letter, versions.least, range, _TARANTOOL, is_new and versions.newer or versions.older)
    io.stdout:write(json.encode({ready = false, error = said}), '\n')
    io.stdout:flush()
    os.exit(1)
end

if config.versions ~= nil then refuse_other_versions(config.versions) end
local elections = config.elections
local has_levels = elections ~= nil and elections.mvcc and is_at_least('2.11')  -- of isolation
local is_first_start = #fio.glob(fio.pathjoin(data, '*.snap')) == 0
local is_bootstrap_master = config.name == config.owner and not config.joins

-- What the operator said of the members since, as it would stand in the instance file.
local members_path = fio.pathjoin(data, 'members.json')
local members_file = io.open(members_path)
if members_file ~= nil then
    for name, value in pairs(json.decode(members_file:read('*a'))) do config[name] = value end
    members_file:close()
end

local function addresses(members)
    local found = {}
    for _, name in ipairs(members) do
        local address = name == config.name and listen or nil
        for index = 4, #arg do
            local peer, where = arg[index]:match('^([^=]+)=(.+)$')
            if peer == name then address = where end
        end
        table.insert(found, address)
    end
    return found
end

local status = {generation = 0, rollbacks = 0, in_flight = 0}
qsync = {}

-- ---- what an answer needs

local function role()
    return box.info.ro and 'replica' or 'owner'
end

local function space_of(name)
    local space = box.space[name]
    if space == nil then box.error(box.error.NO_SUCH_SPACE, tostring(name)) end
    return space
end

local function value_of(tuple)
    if tuple == nil or tuple[2] == nil then return nil end
    return tuple[2]
end

local function is_same(found, wanted)
    if wanted == nil then return found == nil end
    return found == wanted
end

-- A Lua table that goes over the wire as a list, even if it is empty.
local function list_of(values)
    return setmetatable(values, {__serialize = 'seq'})
end

-- Each statement: (results, statement) -> a value found if a compare failed. None of them yields.
local statements = {}

function statements.get(results, statement)
    table.insert(results, space_of(statement[2]):get(statement[3]) or box.NULL)
end

function statements.insert(results, statement)
    table.insert(results, space_of(statement[2]):insert(statement[3]))
end

function statements.replace(results, statement)
    table.insert(results, space_of(statement[2]):replace(statement[3]))
end

function statements.delete(results, statement)
    table.insert(results, space_of(statement[2]):delete(statement[3]) or box.NULL)
end

function statements.cas(results, statement)
    local space, key, old, new = space_of(statement[2]), statement[3], statement[4], statement[5]
    local found = value_of(space:get(key))
    if not is_same(found, old) then return {found == nil and box.NULL or found} end
    space:replace({key, new})
    table.insert(results, true)
end

function statements.scan(results, statement)
    local space, from, below = space_of(statement[2]), statement[3], statement[4]
    local rows = {}
    for _, tuple in space:pairs(from == nil and {} or {from}, {iterator = 'GE'}) do
        if below ~= nil and tuple[1] >= below then break end
        table.insert(rows, tuple)
    end
    table.insert(results, list_of(rows))
end

function statements.append(results, statement)
    local space, key = space_of(statement[2]), statement[3]
    local elements = list_of(value_of(space:get(key)) or {})
    table.insert(elements, statement[4])
    space:replace({key, elements})
    table.insert(results, true)
end

function statements.take(results, statement)
    local space, key = space_of(statement[2]), statement[3]
    local elements = list_of(value_of(space:get(key)) or {})
    if #elements == 0 then
        table.insert(results, box.NULL)
        return
    end
    local first = table.remove(elements, 1)
    space:replace({key, elements})
    table.insert(results, first)
end

function statements.add(results, statement)
    local space, key, amount, least = space_of(statement[2]), statement[3], statement[4], statement[5]
    local sum = (value_of(space:get(key)) or 0) + amount
    if least ~= nil and sum < least then return {sum - amount} end
    space:replace({key, sum})
    table.insert(results, sum)
end

local function run(list)
    local results = list_of({})
    for number, statement in ipairs(list) do
        local perform = statements[statement[1]]
        if perform == nil then box.error(box.error.ILLEGAL_PARAMS, 'statement ' .. tostring(statement[1])) end
        local mismatch = perform(results, statement)
        if mismatch ~= nil then return nil, {number - 1, mismatch[1]} end
    end
    return results
end

local function writes(list)
    for _, statement in ipairs(list) do
        if statement[1] ~= 'get' and statement[1] ~= 'scan' then return true end
    end
    return false
end

-- A transaction of one CALL. Errors of its statements and of its commit reach the client as they are.
local function commit(list)
    box.begin(has_levels and {txn_isolation = 'read-committed'} or nil)
    local ok, results, mismatch = pcall(run, list)
    if not ok then
        box.rollback()
        error(results)
    end
    if mismatch ~= nil then
        box.rollback()
        return nil, mismatch
    end
    status.in_flight = status.in_flight + 1
    local committed, reason = pcall(box.commit)
    status.in_flight = status.in_flight - 1
    if not committed then
        if reason.code == 216 or reason.code == 217 then status.rollbacks = status.rollbacks + 1 end
        error(reason)
    end
    return results
end

-- A transaction that only reads, and the mode that it read in: what is asked for, where the server has such modes.
local function read(list, wanted)
    if not has_levels then return run(list), 'dirty' end
    local mode = (wanted == nil or wanted == box.NULL) and 'read-confirmed' or wanted
    local levels = {dirty = 'read-committed', ['read-confirmed'] = 'read-confirmed', linearizable = 'linearizable'}
    if levels[mode] == nil then box.error(box.error.ILLEGAL_PARAMS, 'read mode ' .. tostring(mode)) end
    box.begin({txn_isolation = levels[mode], timeout = mode == 'linearizable' and 10 or nil})
    local ok, results = pcall(run, list)
    box.rollback()
    if not ok then error(results) end
    return results, mode
end

function qsync.transaction(list, options)
    if box.info.ro and writes(list) then box.error(box.error.READONLY) end
    local answer = {role = role(), mode = 'dirty'}
    local results, mismatch
    if writes(list) then
        results, mismatch = commit(list)
    else
        results, answer.mode = read(list, (options or {}).read)
    end
    answer.committed = mismatch == nil
    answer.results = results
    answer.mismatch = mismatch
    return answer
end

function qsync.dump()
    local spaces = {}
    for _, name in ipairs(config.space_names) do
        local rows = list_of({})
        for _, tuple in box.space[name]:pairs() do table.insert(rows, tuple) end
        spaces[name] = rows
    end
    return {spaces = spaces}
end

-- ---- what the node says of itself

local function links()
    local following, followers, upstreams = {}, {}, {}
    for id, replica in pairs(box.info.replication) do
        local upstream, downstream = replica.upstream, replica.downstream
        if upstream ~= nil then
            upstreams[config.names[replica.uuid] or replica.uuid] = {
                status = upstream.status, idle = upstream.idle, lag = upstream.lag, message = upstream.message,
            }
            if upstream.status == 'follow' then table.insert(following, id) end
        end
        if downstream ~= nil and downstream.status == 'follow' then table.insert(followers, id) end
    end
    return following, followers, upstreams
end

local function vclock()
    local known = setmetatable({}, {__serialize = 'map'})
    for id, lsn in pairs(box.info.vclock) do
        if id ~= 0 then known[tostring(id)] = lsn end
    end
    return known
end

local function sorted(values)
    table.sort(values)
    return list_of(values)
end

-- The ids that stand in _cluster.
local function members()
    local ids = {}
    for _, tuple in box.space._cluster:pairs() do table.insert(ids, tuple[1]) end
    return ids
end

-- Of the queue and the elections, where the server tells of them.
local function with_elections(told)
    if elections == nil then return told end
    told.election, told.term = box.info.election.state, box.info.election.term
    if is_at_least('2.11') then
        told.election_term = box.info.election.term
        told.limbo = box.info.synchro.queue.len
        told.owner = box.info.synchro.queue.owner
    end
    return told
end

function qsync.status()
    local following, followers, upstreams = links()
    return with_elections{
        role = role(), id = box.info.id, vclock = vclock(), term = status.generation, version = box.info.version,
        wall_ns = tonumber(require('clock').time64()), state = box.info.status, limbo = status.in_flight, rollbacks = status.rollbacks, in_rollback = false,
        following = sorted(following), followers = sorted(followers),
        members = sorted(members()), quorum = box.cfg.replication_synchro_quorum,
        upstreams = setmetatable(upstreams, {__serialize = 'map'}),
    }
end

-- ---- the operator's hand

-- Options changed while the node runs; without a table, what they are.
function qsync.cfg(options)
    if options ~= nil then
        box.cfg(options)
        return
    end
    local told = {}
    for _, name in ipairs({'replication_synchro_quorum', 'replication_synchro_timeout', 'replication_timeout'}) do
        told[name] = box.cfg[name]
    end
    return told
end

function qsync.take_over(generation)
    local clear = box.ctl.clear_synchro_queue or box.ctl.promote  -- its name since 2.6.3
    clear()
    box.cfg{read_only = false}
    status.generation = generation
    return qsync.status()
end

function qsync.step_down()
    box.cfg{read_only = true}
    return qsync.status()
end

-- As the documentation has it (Replication stops): resuming stopped replication. Not from what stood in box.cfg before:
-- members may change meanwhile, and who comes while somebody else is here would find nothing there.
function qsync.resume()
    box.cfg{replication = {}}
    box.cfg{replication_connect_quorum = 0, replication = addresses(config.members)}
end

function qsync.remove_member(id)
    box.space._cluster:delete{id}
end

-- `given` has the fields of the configuration that change: members, names, quorum. Kept for the next start, too.
function qsync.set_members(given)
    local file = assert(fio.open(members_path .. '.new', {'O_CREAT', 'O_TRUNC', 'O_WRONLY'}, tonumber('644', 8)))
    file:write(json.encode(given))
    file:close()
    assert(fio.rename(members_path .. '.new', members_path))
    local is_new = json.encode(given.members) ~= json.encode(config.members) or
        json.encode(given.names) ~= json.encode(config.names)
    for name, value in pairs(given) do config[name] = value end
    if box.cfg.replication_synchro_quorum ~= given.quorum then
        box.cfg{replication_synchro_quorum = given.quorum}
    end
    if is_new then box.cfg{replication_connect_quorum = 0, replication = addresses(given.members)} end
end

-- ---- life

-- The harness holds the other end of stdin: its end of file is the end of this process.
fiber.create(function()
    socket.iowait(0, 'R')
    os.exit(0)
end)

local options = {
    listen = listen,
    instance_uuid = config.instance_uuid,
    replicaset_uuid = config.replicaset_uuid,
    replication = addresses(config.members),
    replication_connect_quorum = not is_first_start and 0 or nil,
    replication_connect_timeout = 10,
    replication_timeout = config.replication_timeout_s,
    replication_synchro_quorum = config.quorum,
    replication_synchro_timeout = config.synchro_timeout_s,
    read_only = not (is_bootstrap_master and (is_first_start or not config.has_operator)),
    memtx_dir = data, wal_dir = data, vinyl_dir = data, work_dir = nil,
    memtx_memory = 64 * 1024 * 1024,
    checkpoint_interval = 0, checkpoint_count = 1000,
    feedback_enabled = false,
    log = fio.pathjoin(data, 'tarantool.log'),
    log_nonblock = false,
    too_long_threshold = 10,
    wal_mode = config.wal_mode,
}
if elections ~= nil then
    options.read_only = false
    options.election_mode = elections.mode
    options.election_timeout = elections.timeout_s
    options.memtx_use_mvcc_engine = elections.mvcc
    if is_at_least('2.11') then
        options.election_fencing_mode = elections.fencing
        options.bootstrap_strategy = 'legacy'  -- by it replication_connect_quorum means what it says
    end
end
box.cfg(options)

local function make_spaces()
    box.schema.user.grant('guest', 'super', nil, nil, {if_not_exists = true})
    for _, space in ipairs(config.spaces) do
        local how = {id = space.id, is_sync = space.is_sync, if_not_exists = true}
        box.schema.space.create(space.name, how):create_index('primary', {
            parts = {{1, space.key_type or 'scalar'}}, if_not_exists = true,
        })
    end
end

local function are_there()
    return box.space[config.space_names[#config.space_names]] ~= nil
end

-- Without elections the master is who is not read-only; with them, whoever leads when there is nothing yet.
if elections == nil and is_first_start and is_bootstrap_master then make_spaces() end
while not are_there() do
    if elections ~= nil and is_first_start and not config.joins and not box.info.ro then pcall(make_spaces) end
    fiber.sleep(0.005)
end
if is_bootstrap_master and is_first_start then status.generation = 1 end

io.stdout:write(json.encode({ready = true, port = tonumber(listen:match(':(%d+)$'))}), '\n')
io.stdout:flush()
