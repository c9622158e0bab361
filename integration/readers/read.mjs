// Reads Arrow streams of the gateway with the real apache-arrow, as read.py does
// with Python's readers, and prints the same.
//
// Usage: read.mjs URL…. fetch asks for gzip by itself.

import { CompressionType, RecordBatchReader, compressionRegistry } from 'apache-arrow';
import lz4 from 'lz4js';

// apache-arrow brings no codec; only decode is given, for encode would be tried.
compressionRegistry.set(CompressionType.LZ4_FRAME, { decode: (data) => lz4.decompress(data) });

const stream = 'application/vnd.apache.arrow.stream';

async function read(url) {
  const answer = await fetch(url, { headers: { Accept: stream } });
  if (!answer.ok || answer.headers.get('Content-Type') !== stream) throw new Error(`status ${answer.status}, ${answer.headers.get('Content-Type')}`);
  const lines = [];
  for await (const batch of await RecordBatchReader.from(answer.body)) {
    for (const row of batch) lines.push(JSON.stringify(plain(row.toJSON())));
  }
  return lines;
}

// plain makes of a row what JSON keeps exactly: values as text.
function plain(row) {
  return Object.fromEntries(Object.entries(row).map(([name, v]) => [name, v === null || name === 'timestamp' ? v : String(v)]));
}

for (const [i, url] of process.argv.slice(2).entries()) {
  console.log('# apache-arrow', i);
  try {
    console.log((await read(url)).join('\n'));
  } catch (e) {
    console.log(`! ${e.constructor.name}: ${e.message}`);
  }
}
