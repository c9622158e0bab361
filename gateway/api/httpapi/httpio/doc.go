// Package httpio is what all routes of the HTTP API share: the table entry of a
// route, request parameters and bodies, JSON answers, and the error object into
// which every fault is classified.
//
// The packages of the routes (putroutes, queryroutes, metaroutes, treeroutes,
// adminroutes) and of access import it; it imports none of them.
// Source: HttpQuery, HttpJsonSerializer, BadRequestException.
package httpio
