// Calls the management API as remnawave's nodes do: a command a line from standard input, an answer in JSON a line.
//   node xtls-sdk.cjs PORT
const { createInterface } = require('node:readline');
const { XtlsApi } = require('@remnawave/xtls-sdk');
const messages = '@remnawave/xtls-sdk/build/src/';
const typed = require(messages + 'common/utils/create-typed-message/create-typed-message').default;
const { AddUserOperation } = require(messages + 'xray-protos/app/proxyman/command/command');
const { User } = require(messages + 'xray-protos/common/protocol/user');
const { Account } = require(messages + 'xray-protos/proxy/vmess/account');

const api = new XtlsApi('127.0.0.1', process.argv[2]);

const commands = {
    async add(protocol, tag, username, uuid) {
        if (protocol === 'vless') return api.handler.addVlessUser({ tag, username, uuid, flow: '', level: 0 });
        // It has no words of its own for VMess: its raw client has.
        const user = User.create({ email: username, level: 0, account: typed(Account, { id: uuid }) });
        await api.handler.rawClient.alterInbound({ tag, operation: typed(AddUserOperation, { user }) });
        return { isOk: true };
    },
    async read(username) {
        const { data } = await api.stats.getUserStats(username);
        const online = await api.stats.getUserOnlineStatus(username);
        return { up: data.user.uplink, down: data.user.downlink, online: online.data };
    },
    remove: (tag, username) => api.handler.removeUser(tag, username),
    async users(tag) {
        const { data } = await api.handler.getInboundUsers(tag);
        // Ours keeps what is in accounts to itself.
        const users = data.users.map(({ username, level, protocol }) => ({ username, level, protocol }));
        return [await api.handler.getInboundUsersCount(tag), users];
    },
};

(async () => {
    for await (const line of createInterface({ input: process.stdin })) {
        const [command, ...words] = line.split(' ');
        // Xray puts the place in its code before what it says.
        const said = (error) => ({ error: (error.details ?? error.message).split(': ').at(-1) });
        const answer = await commands[command](...words).catch(said);
        console.log(JSON.stringify(answer));
    }
    process.exit(0);
})();
