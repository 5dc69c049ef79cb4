// node-opcua as the other side: `opcua_stranger.js server port` or `opcua_stranger.js client port`.
// NODE_PATH must name a folder with node-opcua-server and node-opcua-client.
"use strict";
const [role, port] = process.argv.slice(2);
const say = (text) => console.log(`> ${text}`); // node-opcua logs to the same place

async function serve() {
  const { OPCUAServer } = require("node-opcua-server");
  const { Variant } = require("node-opcua-variant");
  const { StatusCodes } = require("node-opcua-status-code");
  const server = new OPCUAServer({ port: Number(port), hostname: "127.0.0.1" });
  await server.initialize();
  const space = server.engine.addressSpace.getOwnNamespace();
  let level = 12.5;
  const at = server.engine.addressSpace.rootFolder.objects;
  space.addVariable({
    organizedBy: at, nodeId: "s=Level", browseName: "Level", dataType: "Double", minimumSamplingInterval: 10,
    value: { get: () => new Variant({ dataType: 11, value: level }) },
  });
  space.addVariable({
    organizedBy: at, nodeId: "s=Valve", browseName: "Valve", dataType: "Double", minimumSamplingInterval: 10,
    value: {
      get: () => new Variant({ dataType: 11, value: level }),
      set: (variant) => { level = variant.value; say(`valve ${level}`); return StatusCodes.Good; },
    },
  });
  await server.start();
  say("ready");
}

async function ask() {
  const { OPCUAClient, AttributeIds, DataType } = require("node-opcua-client");
  const client = OPCUAClient.create({ endpointMustExist: false, connectionStrategy: { maxRetry: 2 } });
  await client.connect(`opc.tcp://127.0.0.1:${port}`);
  const session = await client.createSession();
  const array = await session.readNamespaceArray();
  const space = array.indexOf("urn:hilnode");
  const angle = await session.read({ nodeId: `ns=${space};s=plant.angle`, attributeId: AttributeIds.Value });
  say(`angle ${angle.value.value}`);
  const written = await session.write({
    nodeId: `ns=${space};s=plant.torque`, attributeId: AttributeIds.Value,
    value: { value: { dataType: DataType.Double, value: -2.5 } },
  });
  say(`torque ${written.name}`);
  const refused = await session.write({
    nodeId: `ns=${space};s=plant.angle`, attributeId: AttributeIds.Value,
    value: { value: { dataType: DataType.Double, value: 9 } },
  });
  say(`angle ${refused.name}`);
  await session.close();
  await client.disconnect();
}

(role === "server" ? serve() : ask()).catch((error) => { say(`error ${error.message}`); process.exit(1); });
