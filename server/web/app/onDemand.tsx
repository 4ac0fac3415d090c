import { useSignal } from '@preact/signals';
import type { ComponentType } from 'preact';
import { useEffect } from 'preact/hooks';
import { Loading } from './parts/loaded.tsx';

/** A page whose code is loaded when it is opened. If its file is gone, `load.js` loads everything again. */
export function onDemand(load: () => Promise<ComponentType>): ComponentType {
  let loaded: ComponentType | undefined;
  return function OnDemand() {
    const isLoaded = useSignal(loaded !== undefined);
    useEffect(() => {
      if (loaded) return;
      load().then(
        (component) => {
          loaded = component;
          isLoaded.value = true;
        },
        () => undefined,
      );
    }, []);
    const Loaded = loaded;
    return isLoaded.value && Loaded ? <Loaded /> : <Loading />;
  };
}
