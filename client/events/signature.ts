/** Checks signatures of Standard Webhooks with what browsers, edge runtimes and Node have in common. */

/** The headers of a message. */
export type Signed = { id: string; timestamp: string; signatures: string };

/** Whether a signature is right. Each secret signs the message once, however many signatures were sent. */
type CheckSignature = (signed: Signed, body: Uint8Array<ArrayBuffer>) => Promise<boolean>;

/** Throws for text that is no secret. */
export function makeSignatureCheck(secrets: readonly string[]): CheckSignature {
  if (secrets.length === 0) throw new Error('secret must be the secret of the webhook, or a list of secrets.');
  const keys = secrets.map(decode).map((key) => importKey(key));

  return async ({ id, timestamp, signatures }, body) => {
    const content = await new Blob([`${id}.${timestamp}.`, body]).arrayBuffer();
    const sent = signatures.split(' ').flatMap((signature) => signature.match(/^v1,(.+)$/)?.[1] ?? []);

    let isRight = false;
    for (const key of keys) {
      const right = toText(await crypto.subtle.sign('HMAC', await key, content));
      for (const signature of sent) isRight = isSame(signature, right) || isRight;
    }
    return isRight;
  };
}

const importKey = (key: Uint8Array<ArrayBuffer>) =>
  crypto.subtle.importKey('raw', key, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);

function decode(secret: string): Uint8Array<ArrayBuffer> {
  try {
    const bytes = Uint8Array.from(atob(secret.replace(/^whsec_/, '')), (letter) => letter.charCodeAt(0));
    if (bytes.length > 0) return bytes;
  } catch {
    // The secret is not shown: logs keep messages of errors.
  }
  throw new Error('secret must be the text that webhooks.create returned: whsec_ and base64.');
}

const toText = (bytes: ArrayBuffer) => btoa(String.fromCharCode(...new Uint8Array(bytes)));

/** In constant time: compares all characters, wherever they differ. */
function isSame(one: string, other: string): boolean {
  let difference = one.length ^ other.length;
  for (let at = 0; at < other.length; at++) difference |= (one.charCodeAt(at) || 0) ^ other.charCodeAt(at);
  return difference === 0;
}
