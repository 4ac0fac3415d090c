import { useSignal } from '@preact/signals';
import { account } from '../account.ts';
import { Button, Hint } from '../parts/button.tsx';
import { counted } from '../parts/counted.ts';
import { Field } from '../parts/form.tsx';
import { FormButton } from '../parts/formButton.tsx';
import { say } from '../parts/message.tsx';
import { download } from '../parts/secret.tsx';
import { client } from '../service.ts';
import { keepSession } from '../session.ts';

const LOOK_MILLISECONDS = 1000;

/** What the service has about the person, to take along, and to erase. */
export function OwnData() {
  const isCollecting = useSignal(false);
  const exportAll = async () => {
    isCollecting.value = true;
    await saveExport().finally(() => {
      isCollecting.value = false;
    });
  };
  return (
    <section>
      <h2>Your data</h2>
      <Hint>Everything about you as a JSON file, without secrets.</Hint>
      <div class="choices">
        <Button as="quiet" onClick={exportAll} disabled={isCollecting.value}>
          {isCollecting.value ? 'Collecting…' : 'Export my data'}
        </Button>
        <FormButton action="Erase my account" onSubmit={erase} isDestructive>
          <p>
            Your name, address, sessions, API keys, memberships and invitations are deleted. Cards and comments stay,
            without your name. Webhooks that you made are paused. Nobody can undo this.
          </p>
          <Field label={`Type ${account.value?.email} to erase it`} name="email" required autocomplete="off" />
        </FormButton>
      </div>
    </section>
  );
}

async function saveExport(): Promise<void> {
  await client.account.startExport.mutate();
  let first = await client.account.getExport.query({});
  while (first.state === 'waiting') {
    await new Promise((resolve) => setTimeout(resolve, LOOK_MILLISECONDS));
    first = await client.account.getExport.query({});
  }
  if (first.state !== 'ready') return say('The export has failed. Try again later.');
  const rows = [...first.rows];
  for (let part = 2; part <= first.parts; part++) rows.push(...(await client.account.getExport.query({ part })).rows);
  download('deckhand-export.json', JSON.stringify(rows, null, 2), 'application/json');
  say(`Saved ${counted(rows.length, 'row')}.`);
}

async function erase({ email = '' }: Record<string, string>): Promise<void> {
  if (email.trim().toLowerCase() !== account.peek()?.email.toLowerCase()) throw new Error('That is another address.');
  await client.account.erase.mutate();
  keepSession(undefined);
  say('Your account is erased.');
}
