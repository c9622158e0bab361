// The documentation's site, as the gateway makes it.

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

const root = new URL('../../', import.meta.url);
let made;

// siteFile returns a file of the site.
export function siteFile(name) {
  made ??= execFileSync('go', ['run', './gateway/cmd/docsite', 'build/site'], { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] });
  return readFileSync(new URL(`build/site/${name}`, root));
}
