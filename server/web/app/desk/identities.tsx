import { account } from '../account.ts';
import { Hint } from '../parts/button.tsx';
import { usePages } from '../parts/loaded.tsx';
import { Table } from '../parts/table.tsx';
import { Time } from '../parts/time.tsx';
import { client } from '../service.ts';
import { SsoButton, useIssuers } from '../sso.tsx';
import { asPage, Steps } from './operators.tsx';

type Identity = Awaited<ReturnType<typeof client.account.listIdentities.query>>['identities'][number];

/** Accounts at identity providers that sign in to this one. */
export function Identities() {
  const issuers = useIssuers();
  const pages = usePages((cursor) => asPage(client.account.listIdentities.query({ limit: 50, cursor })), []);
  if (issuers.length === 0 && account.value?.has_password) return null;
  const stepsOf = ({ id, issuer, issuer_title }: Identity) => [
    {
      label: 'Unlink',
      run: async () => {
        await client.account.unlinkIdentity.mutate({ id });
        await pages.reload();
      },
      question: `You can no longer sign in here with this account of ${issuer_title ?? issuer}. Where you did, you are signed out.`,
      isDestructive: true,
      done: 'The identity is unlinked.',
    },
  ];
  return (
    <section>
      <h2>Identities</h2>
      <Hint>
        You can sign in here with these accounts of other services. So can anybody else who can use one of them.
      </Hint>
      <Table
        noun="identity"
        pages={pages}
        columns={[
          ['Provider', ({ issuer, issuer_title }) => issuer_title ?? issuer],
          ['Account there', ({ subject }) => subject],
          ['Last used', ({ last_used_at }) => (last_used_at ? <Time at={last_used_at} /> : 'never')],
          ['', (row) => <Steps of={row.issuer_title ?? row.issuer} steps={stepsOf(row)} />],
        ]}
        none="No identity is linked."
      />
      <div class="choices">
        {issuers.map(({ name, title }) => (
          <SsoButton key={name} issuer={name} purpose="link" text={`Link ${title}`} />
        ))}
      </div>
    </section>
  );
}
