import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto';
import { keyId } from './tokens.ts';

/** Encrypts secrets, bound to their owner: they can't be decrypted in another row. */
export type SecretBox = {
  seal: (text: string, ownerId: number, kind?: OwnerKind) => string;
  /** The decrypted text, or `undefined` if no known key fits. Plain text from before encryption is returned unchanged. */
  open: (stored: string, ownerId: number, kind?: OwnerKind) => string | undefined;
  /** Hashes of a text with each known key, the current one first; without a key, nobody can guess the text from them. */
  hashes: (text: string) => string[];
  /** The prefix of everything that is encrypted with the current key. */
  prefix: string;
};

/** Whose secret it is: a user by default. */
export type OwnerKind = 'user' | 'webhook';

const CIPHER = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const VERSION = 'v1';

/** Encrypts with the key of the first secret, and decrypts with those of all, so that secrets can be rotated. */
export function makeSecretBox(secrets: [string, ...string[]]): SecretBox {
  const keys = new Map(secrets.map((secret) => [keyId(secret), deriveKey(secret)]));
  const prefix = `${VERSION}.${keyId(secrets[0])}.`;
  const currentKey = deriveKey(secrets[0]);
  const hashKeys = secrets.map((secret) => deriveKey(secret, 'deckhand hash v1'));

  return {
    prefix,
    hashes: (text) => hashKeys.map((key) => createHmac('sha256', key).update(text).digest('base64url')),
    seal: (text, ownerId, kind) => {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv(CIPHER, currentKey, nonce).setAAD(ownerOf(ownerId, kind));
      const sealed = [nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()];
      return prefix + Buffer.concat(sealed).toString('base64url');
    },
    open: (stored, ownerId, kind) => {
      const [version, id = '', sealed = ''] = stored.split('.');
      if (version === stored) return stored;
      const key = keys.get(id);
      if (version !== VERSION || !key) return undefined;
      try {
        const bytes = Buffer.from(sealed, 'base64url');
        const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES })
          .setAAD(ownerOf(ownerId, kind))
          .setAuthTag(bytes.subarray(-TAG_BYTES));
        return decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES), undefined, 'utf8') + decipher.final('utf8');
      } catch {
        return undefined;
      }
    },
  };
}

/** A derived key, so that the signing secret itself encrypts nothing. */
const deriveKey = (secret: string, purpose = 'deckhand second factor v1') =>
  Buffer.from(hkdfSync('sha256', secret, '', purpose, 32));

const ownerOf = (id: number, kind: OwnerKind = 'user') => Buffer.from(`${kind} ${id}`);
