// Signs statements and checks the log's receipts with @transmute/cose.
// usage: node transmute_client.mjs URL
//
// The package has ECDSA only. An Ed25519 statement is signed through its
// `remote` hook, and an Ed25519 log's signature is checked by node:crypto;
// the COSE encoding and the Merkle root are the package's in every case.

import cose from '@transmute/cose'
import { createHash, createPublicKey, generateKeyPairSync, sign, verify } from 'node:crypto'

const url = (process.argv[2] ?? '').replace(/\/+$/, '')
const { Alg, ContentType, CWTClaims, Kid, VerifiableDataStructure } = cose.Protected
const KEY = { kty: 1, kid: 2, alg: 3, crv: -1, x: -2 }
const EDDSA = -8

function check(what, passed, detail = '') {
  if (!passed) {
    console.error(`FAIL ${what} ${detail}`)
    process.exit(1)
  }
  console.log(`ok   ${what}`)
}

const fails = (promise) => promise.then(() => false, () => true)
const sha256 = (data) => createHash('sha256').update(data).digest()
const flip = (data) => Buffer.from(data.map((byte, at) => (at === data.length - 1 ? byte ^ 1 : byte)))
const ed25519 = (x) =>
  createPublicKey({ format: 'jwk', key: { kty: 'OKP', crv: 'Ed25519', x: Buffer.from(x).toString('base64url') } })

async function get(path, accept) {
  const answer = await fetch(new URL(path, url), { headers: { accept } })
  const body = Buffer.from(await answer.arrayBuffer())
  check(`GET ${path.split('/').slice(0, 3).join('/')} answers 200`, answer.status === 200, `${answer.status} ${body}`)
  return body
}

async function register(statement) {
  const headers = { 'content-type': 'application/cose', accept: 'application/cose' }
  const answer = await fetch(`${url}/entries`, { method: 'POST', headers, body: statement })
  const body = Buffer.from(await answer.arrayBuffer())
  check('POST /entries answers 201', answer.status === 201, `${answer.status} ${body}`)
  check('the answer names its entry', Boolean(answer.headers.get('location')))
  return body
}

/** The package's detached verifier, or the same for a key type it lacks. */
async function verifierFor(logKey) {
  if (logKey.get(KEY.alg) !== EDDSA) {
    const jwk = await cose.key.convertCoseKeyToJsonWebKey(logKey)
    return cose.detached.verifier({ resolver: { resolve: async () => jwk } })
  }
  return {
    verify: async ({ coseSign1, payload }) => {
      const [protectedHeader, , , signature] = cose.cbor.decodeFirstSync(coseSign1).value
      const signed = cose.cbor.encode(['Signature1', protectedHeader, Buffer.alloc(0), Buffer.from(payload)])
      if (!verify(null, signed, ed25519(logKey.get(KEY.x)), signature)) throw new Error('bad signature')
      return payload
    },
  }
}

async function run(name, issuer) {
  const statement = Buffer.from(await cose.attached.signer({ remote: issuer }).sign({
    protectedHeader: cose.ProtectedHeader([
      [Alg, issuer.alg],
      [ContentType, 'application/json'],
      [Kid, issuer.kid],
      [CWTClaims, new Map([[1, 'https://agent.example'], [2, 'urn:example:run:2'], ...issuer.claims])],
    ]),
    unprotectedHeader: cose.UnprotectedHeader([]),
    payload: Buffer.from('{"action":"deploy","result":"ok"}'),
  }))
  console.log(`     ${name} statement, ${statement.length} bytes`)
  const receipt = await register(statement)

  const header = cose.cbor.decodeFirstSync(cose.cbor.decodeFirstSync(receipt).value[0])
  check('the receipt is vds 1', header.get(VerifiableDataStructure) === 1)
  const keys = cose.cbor.decodeFirstSync(await get('/.well-known/scitt-keys', 'application/cbor'))
  const logKey = keys.find((key) => header.get(Kid)?.equals(key.get(KEY.kid)))
  check("the receipt's kid names a key of the log", logKey !== undefined)

  const verifier = await verifierFor(logKey)
  const entry = await cose.receipt.leaf(sha256(statement))
  const root = await cose.receipt.inclusion.verify({ entry, receipt, verifier })
  check('the receipt verifies over the recomputed root', root.byteLength === 32)

  const transparent = Buffer.from(await cose.receipt.add(statement, receipt))
  const [attached] = await cose.receipt.get(transparent)
  check('the receipt survives attaching', Buffer.from(attached).equals(receipt))
  check('the statement survives detaching', Buffer.from(await cose.receipt.remove(transparent)).equals(statement))

  const other = await cose.receipt.leaf(sha256(flip(statement)))
  check('the receipt fails for another statement',
    await fails(cose.receipt.inclusion.verify({ entry: other, receipt, verifier })))
  check('a changed receipt fails',
    await fails(cose.receipt.inclusion.verify({ entry, receipt: flip(receipt), verifier })))
}

async function es256() {
  const secret = await cose.key.generate('ES256', 'application/cose-key')
  const jwk = await cose.key.convertCoseKeyToJsonWebKey(secret)
  const confirmation = new Map([[1, await cose.key.publicFromPrivate(secret)]])
  const kid = Buffer.from(secret.get(KEY.kid)) // the RFC 9679 thumbprint
  return { alg: cose.Signature.ES256, kid, claims: [[8, confirmation]], ...cose.crypto.signer({ privateKeyJwk: jwk }) }
}

function eddsa() {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const kid = Buffer.from(publicKey.export({ format: 'jwk' }).x, 'base64url')
  return { alg: EDDSA, kid, claims: [], sign: async (bytes) => sign(null, Buffer.from(bytes), privateKey) }
}

if (!url) {
  console.error('usage: node transmute_client.mjs URL')
  process.exit(1)
}
await run('Ed25519', eddsa())
await run('ES256', await es256())
