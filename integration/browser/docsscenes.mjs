// States of the documentation, for the screenshots: its first page, a page of tables, the reference of
// the API, and what a search finds.

const page = (path, act) => ({ path, script: () => {}, act });

const searched = (question) => async (p) => {
  await p.locator('#search').fill(question);
  await p.locator('#count').filter({ hasText: 'found' }).waitFor();
};

export const docsScenes = {
  docs: page('/docs/'),
  docssettings: page('/docs/settings'),
  docsqueries: page('/docs/queries'),
  docssearch: page('/docs/', searched('slow queries')),
  docsnothing: page('/docs/', searched('no-such-word')),
};
