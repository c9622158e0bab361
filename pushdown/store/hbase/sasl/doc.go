// Package sasl is the bytes of a connection to an HBase server that wants Kerberos: the
// frames of SASL's handshake, and the wrap tokens in which calls and replies travel
// afterwards if they are signed or sealed. It knows no network and no ticket.
//
// # The handshake
//
// All numbers are big-endian. These are the bytes that HBase 2.5.11 sent and accepted; C is the
// client, S the server.
//
//	C  48 42 61 73 00 51         preamble "HBas", version 0, SASL
//	   0000028a 60 82 0286 …     length, and the token with the AP-REQ
//	S  00000000                  status: success
//	   00000072 60 70 …          length, and the token with the AP-REP
//	C  00000000                  length: no token
//	S  00000000 00000020         status, length
//	   0504 01ff 000c 0000 …     a wrap token, signed: the offer 07 010000
//	C  00000020 0504 00ff …      a wrap token, signed: the choice 04 ffffff
//
// The server does not reply to the choice. What follows is HBase's connection header and
// calls, without another preamble. Two other replies end the handshake:
//
//	S  00000001 0000000f "javax.security…" 00000013 "GSS initiate failed"
//	   status: error; the exception's class and message, each after its length
//	S  00000000 ffffffa8         length -88: use no SASL at all
//
// Offer and choice are RFC 4752's: a bit for each protection (1 authentication, 2
// integrity, 4 privacy), and in three bytes how long a message the sender takes.
//
// # Wrap tokens
//
// With integrity or privacy, the stream of calls and that of replies are cut anywhere,
// and each piece travels as a length in four bytes and a wrap token, RFC 4121's of
// version 2:
//
//	0504               a wrap token
//	02                 flags: 1 from the acceptor, 2 sealed, 4 the acceptor's subkey
//	ff                 filler
//	0000               EC: bytes of filler, or of the checksum where it is not sealed
//	0000               RRC: by how many bytes what follows is rotated to the right
//	0000000012345678   sequence number
//	…                  sealed: encrypted confounder, data, filler and header, then a MAC;
//	                   else: data, then a MAC over data and header
//
// Encryption and MAC are those of RFC 3962 (AES with SHA-1) and RFC 8009 (AES with
// SHA-2). The derived keys are kept, because deriving them costs ten times as much as
// sealing a small call.
package sasl
