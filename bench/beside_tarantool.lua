-- One node of three: everybody follows everybody, the first one writes, a row counts when two have it.
local number, wal_mode = tonumber(arg[1]), arg[2]
local ports = {arg[3], arg[4], arg[5]}
local replication = {}
for place, port in ipairs(ports) do replication[place] = 'guest@127.0.0.1:' .. port end

box.cfg{
    listen = '127.0.0.1:' .. ports[number],
    replication = replication,
    replication_connect_timeout = 20,
    replication_synchro_quorum = 2,
    replication_synchro_timeout = 5,
    read_only = number ~= 1,
    wal_mode = wal_mode,
    feedback_enabled = false,
    checkpoint_interval = 0,
    log = 'tarantool.log',
}
if number == 1 then
    box.schema.user.grant('guest', 'super', nil, nil, {if_not_exists = true})
    box.schema.space.create('register', {id = 512, is_sync = true}):create_index('primary', {parts = {{1, 'scalar'}}})
end
-- Not before: a replica that recovers waits for a quorum no longer than this.
if number == 1 then box.cfg{replication_synchro_timeout = 0.1} end
while box.space.register == nil do require('fiber').sleep(0.01) end
io.stdout:write('ready\n')
io.stdout:flush()
require('fiber').create(function()
    require('socket').iowait(0, 'R')
    os.exit(0)
end)
